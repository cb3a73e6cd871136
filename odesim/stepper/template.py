"""Generates text from templates."""


def fit(template: str, **words: object) -> str:
    """The template with its words filled in; a word of several lines is indented like its first line."""
    out = []
    for line in template.split("\n"):
        name = line.strip().strip("{}")
        if line.strip() == f"{{{name}}}":
            margin = line[: len(line) - len(line.lstrip())]
            out += [margin + inner for inner in str(words[name]).split("\n")]
        else:
            out.append(line.format(**words))
    return "\n".join(out)
