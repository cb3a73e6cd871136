"""A wheel, an editable install and a bare checkout hold the same modules and work from any directory."""

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PARTS = {
    "odesim": ROOT / "odesim",
    "odesim.models": ROOT / "models",
    "odesim.figures": ROOT / "figures",
    "odesim.notebooks": ROOT / "notebooks",
}
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
WITHOUT_TAGS = PROJECT["tool"]["setuptools_scm"]["fallback_version"]
SHIPPED = (".gitignore", "pyproject.toml", "README.md", "LICENSE", "odesim", "models", "figures", "notebooks")


@dataclass(frozen=True)
class House:
    """A Python that has odesim in one way, and a folder away from its source to run it in."""

    python: Path
    away: Path
    path: str = ""

    def run(self, *arguments: str) -> str:
        """What `python ARGUMENTS` prints in the folder away from the source; fails unless it exits with 0."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")} | {"PYTHONDONTWRITEBYTECODE": "1"}
        if self.path:
            environment["PYTHONPATH"] = self.path
        command = [str(self.python), *arguments]
        done = subprocess.run(command, cwd=self.away, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of what is shipped: building in the checkout itself would leave files there."""
    copy = tmp_path_factory.mktemp("source") / "odesim"
    copy.mkdir()
    for name in SHIPPED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__", "version.txt"))
        else:
            shutil.copy(source, copy / name)
    return copy


@pytest.fixture(scope="module")
def empty(tmp_path_factory) -> Callable[[], House]:
    """Makes an environment with this one's packages but without its odesim.

    A path file names this environment's folder of packages; path files in that folder, which an editable
    install of odesim consists of, are not read from there.
    """

    def make() -> House:
        folder = tmp_path_factory.mktemp("environment")
        venv.create(folder, with_pip=False, symlinks=os.name != "nt")
        scheme = {"base": str(folder), "platbase": str(folder)}
        packages = Path(sysconfig.get_path("purelib", "venv", scheme))
        theirs = dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
        (packages / "outer.pth").write_text("\n".join(theirs) + "\n")
        away = folder / "away"
        away.mkdir()
        return House(Path(sysconfig.get_path("scripts", "venv", scheme)) / "python", away)

    return make


def install(house: House, *arguments: str) -> House:
    """house after `pip install ARGUMENTS`: nothing from the network, nothing outside house touched."""
    house.run("-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--ignore-installed", *arguments)
    return house


def by_wheel(checkout: Path, house: House) -> House:
    house.run("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(house.away), str(checkout))
    (wheel,) = house.away.glob("odesim-*.whl")
    return install(house, str(wheel))


def by_editable(checkout: Path, house: House) -> House:
    return install(house, "--editable", str(checkout))


def by_path(checkout: Path, house: House) -> House:
    return House(house.python, house.away, str(checkout))


@pytest.fixture(scope="module", params=[by_wheel, by_editable, by_path], ids=["wheel", "editable", "bare"])
def house(request, checkout, empty) -> House:
    return request.param(checkout, empty())


def modules_in_tree() -> set[str]:
    """Dotted names of all Python files in the checkout that are shipped, packages included."""
    names = set()
    for package, folder in PARTS.items():
        for file in folder.rglob("*.py"):
            inner = file.relative_to(folder).with_suffix("").parts
            names.add(".".join([package, *(inner[:-1] if inner[-1] == "__init__" else inner)]))
    return names


@pytest.mark.first(1)
def test_every_module_is_found(house):
    """pkgutil lists every file of the tree, and nothing else."""
    code = """
import pkgutil, odesim
def names(package, prefix):
    for found in pkgutil.iter_modules(package.__path__, prefix):
        yield found.name
        if found.ispkg or found.name in ("odesim.models", "odesim.figures", "odesim.notebooks"):
            yield from names(__import__(found.name, fromlist=["_"]), found.name + ".")
print("odesim", *names(odesim, "odesim."))
"""
    assert set(house.run("-c", code).split()) == modules_in_tree()


@pytest.mark.first(1)
def test_a_model_is_imported_by_name(house):
    """A model is a module of odesim.models that holds SYSTEM; the file is the one that was installed."""
    code = "import odesim, odesim.models.joma.nonlinear as m; print(m.SYSTEM.name, m.__file__, odesim.__file__)"
    name, *files = house.run("-c", code).split()
    assert name == "joma.nonlinear"
    assert not any(Path(file).is_relative_to(ROOT) for file in files)


@pytest.mark.first(1)
def test_data_comes_along(house):
    """The models' references, the mark of a typed package and the figures' published numbers are files beside the modules."""
    code = (
        "import odesim, odesim.models as m, odesim.figures as f; from pathlib import Path\n"
        "top, models, figures = (Path(p) for p in (odesim.__path__[0], m.__path__[0], f.__path__[0]))\n"
        "files = top / 'py.typed', models / 'references.bib', figures / 'published/README.md'\n"
        "print(*(file.is_file() for file in files), len(list(files[-1].parent.glob('*.csv'))))"
    )
    assert house.run("-c", code).split() == ["True", "True", "True", str(len(list((ROOT / "figures/published").glob("*.csv"))))]


@pytest.mark.first(1)
def test_the_command_runs(house):
    """`python -m odesim` answers with the version of a tree without tags, and lists the models."""
    assert house.run("-m", "odesim", "--version").split() == ["odesim", WITHOUT_TAGS]
    assert "joma.nonlinear" in house.run("-m", "odesim", "list", "joma")


@pytest.mark.slow
@pytest.mark.parametrize("house", [by_wheel], indirect=True, ids=["wheel"])
def test_the_script_is_installed(house):
    """A wheel brings the command `odesim`."""
    script = house.python.parent / ("odesim.exe" if os.name == "nt" else "odesim")
    done = subprocess.run([script, "--version"], cwd=house.away, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["odesim", WITHOUT_TAGS]


def test_packages_are_the_folders():
    """The list in pyproject.toml names every folder with Python files, and each has an __init__.py."""
    folders = {".".join([p, *f.parent.relative_to(root).parts]): f.parent for p, root in PARTS.items() for f in root.rglob("*.py")}
    assert sorted(PROJECT["tool"]["setuptools"]["packages"]) == sorted(folders)
    assert [name for name, folder in folders.items() if not (folder / "__init__.py").is_file()] == []


@pytest.mark.slow
def test_the_tag_is_the_version(checkout, empty, tmp_path):
    """A wheel has the version of the tag beside it, in its metadata and in what odesim says; a commit later it is the next one's."""
    tree, commit = tmp_path / "tree", ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "one"]
    shutil.copytree(checkout, tree)
    for versions, commands in {
        "7.8.9": (["init", "-q"], ["add", "-A"], commit, ["tag", "v7.8.9"]),
        "7.8.10.dev1": (commit,),
    }.items():
        for command in commands:
            subprocess.run(["git", *command], cwd=tree, check=True)
        house = by_wheel(tree, empty())
        assert house.run("-m", "odesim", "--version").split() == ["odesim", versions]
        assert [path.name for path in house.away.glob("*.whl")] == [f"odesim-{versions}-py3-none-any.whl"]


def test_one_version():
    """A tree without tags, in pyproject.toml and in the package, says which release comes; the citation and the recipe name it."""
    source = (ROOT / "odesim" / "base" / "options.py").read_text()
    assert re.findall(r'^__version__ = .* else "(.+)"$', source, re.MULTILINE) == [WITHOUT_TAGS]
    assert f"{CITATION['version']}.dev0" == WITHOUT_TAGS
    assert "version" in PROJECT["project"]["dynamic"] and CITATION["version"] in (ROOT / "CHANGELOG.md").read_text()
    assert {"cff-version", "message", "title", "authors"} <= CITATION.keys()


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Those of a body and of all bodies in it; expressions are not looked at."""
    for node in body:
        yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from statements(getattr(node, part, []))


def needed(folder: Path) -> set[str]:
    """Distributions that the Python files below folder import from, but for what is optional."""
    nodes = [node for file in folder.rglob("*.py") for node in statements(ast.parse(file.read_text()).body)]
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    roots = {name.split(".")[0] for name in plain | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}}
    ours = {"odesim", "tests", "models", "figures", "notebooks", *sys.stdlib_module_names}
    # cuda12, cuda13, parquet, html, explore and cluster, imported where they are asked for
    extras = {"cupy", "cupyx", "dask", "pyarrow", "plotly", "distributed", "cloudpickle"}
    extras |= {"bokeh", "jupyter_bokeh"}
    named = {"yaml": "pyyaml", "PIL": "pillow", "mpl_toolkits": "matplotlib"}
    named |= {
        "llvmlite": "numba",
        "numcodecs": "zarr",
        "google_crc32c": "zarr",
        "tornado": "bokeh",
        "contourpy": "bokeh",
    }  # which stand on them
    return {named.get(root, root) for root in roots - ours} - (extras if folder.name == "odesim" else {"cupy", "cupyx"})


@pytest.mark.slow
def test_every_import_is_a_dependency():
    """A fresh environment has all that the code imports, and with the extra `test` all that the tests import."""
    project = PROJECT["project"]
    core, test = (
        {re.split(r"[<>=!~; ]", line)[0].lower() for line in lines}
        for lines in (project["dependencies"], project["optional-dependencies"]["test"])
    )
    for folder in PARTS.values():
        assert needed(folder) <= core, folder
    assert needed(ROOT / "tests") <= core | test


@pytest.mark.parametrize("extra", ["cuda12", "cuda13"])
def test_an_extra_brings_all_that_a_gpu_needs(extra):
    """cupy with NVIDIA's libraries, which it finds where pip puts them since version 14."""
    (line,) = PROJECT["project"]["optional-dependencies"][extra]
    found = re.fullmatch(r"cupy-(cuda\d\d)x\[ctk\]>=(\d+)\.0", line)
    assert found is not None and found[1] == extra and int(found[2]) >= 14


def test_every_extra_that_is_named_is_there():
    """What the code and the documents tell people to install."""
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(file for folder in PARTS.values() for file in folder.rglob("*.py"))]
    named = {extra for file in files for group in re.findall(r"odesim\[([\w,]+)\]", file.read_text()) for extra in group.split(",")}
    assert {"cuda12", "cuda13"} <= named <= PROJECT["project"]["optional-dependencies"].keys()


def test_every_command_is_in_the_smoke():
    """`.ci/smoke`, which also runs at the lowest versions, runs every command."""
    from odesim.cli.app import COMMANDS

    text = (ROOT / ".ci" / "smoke").read_text()
    assert set(COMMANDS) == set(re.findall(r"\brun odesim (\w+)", text))


def test_actions_are_pinned():
    """The workflows take the actions of others by the hash of a commit, which nobody can move as a tag."""
    used = [line for file in (ROOT / ".github" / "workflows").iterdir() for line in re.findall(r"uses: *(.*)", file.read_text())]
    assert used and [line for line in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v[\d.]+", line)] == []


@pytest.mark.parametrize("file", sorted((ROOT / ".github" / "workflows").iterdir()), ids=lambda file: file.stem)
def test_workflows_are_whole(file):
    """Each job has a machine, a time limit and steps, waits for jobs that there are, and may only read, unless it says for what not."""
    workflow = yaml.safe_load(file.read_text())
    assert workflow["permissions"] == {"contents": "read"} and True in workflow  # YAML reads the word `on` as a truth
    for job in workflow["jobs"].values():
        assert {"runs-on", "timeout-minutes", "steps"} <= job.keys() and job.get("needs", next(iter(workflow["jobs"]))) in workflow["jobs"]
        assert all(("uses" in step) != ("run" in step) for step in job["steps"])
        for script in (word for step in job["steps"] for word in step.get("run", "").split() if word.startswith(".ci/")):
            assert os.access(ROOT / script, os.X_OK)


def test_the_paper_cites_what_it_lists():
    """Every key of paper.md is in its bibliography, once, and the other way round."""
    paper, bib = ((ROOT / "docs" / "paper" / f"paper.{ending}").read_text() for ending in ("md", "bib"))
    listed = re.findall(r"^@\w+\{(\w+),", bib, re.MULTILINE)
    assert sorted(listed) == sorted(set(re.findall(r"@(\w+)", paper)))


def test_readme_on_the_index(tmp_path):
    """Every link and picture of the README that is released is absolute, at the tag, to a file or folder that is here."""
    shutil.copy(ROOT / "README.md", tmp_path)
    subprocess.run([sys.executable, ROOT / ".ci" / "index_readme", "v9.8", tmp_path / "README.md"], check=True)
    source, text = ((folder / "README.md").read_text() for folder in (ROOT, tmp_path))
    before, links = (re.findall(r"""(?:\]\(|href="|src=")([^()\s"]+)""", page) for page in (source, text))
    assert len(before) > 20 and sum(target.endswith(".png") for target in before) == source.count("![") + source.count("<img ") > 6
    for target, link in zip(before, links, strict=True):
        host = "raw.githubusercontent.com/odesim/odesim" if target.endswith(".png") else r"github.com/odesim/odesim/(blob|tree)"
        found = re.fullmatch(rf"https://{host}/v9.8/(?P<path>[^#]+)(#.*)?", link)
        assert found is not None and link.endswith(target), link
        path = ROOT / found["path"]
        assert path.is_dir() == ("/tree/" in link) and path.exists()
    subprocess.run([sys.executable, ROOT / ".ci" / "index_readme", "v1", tmp_path / "README.md"], check=True)
    assert (tmp_path / "README.md").read_text() == text
    (tmp_path / "README.md").write_text("[a](docs/no_such_file.md)")
    done = subprocess.run([sys.executable, ROOT / ".ci" / "index_readme", "v1", tmp_path / "README.md"], capture_output=True, text=True)
    assert done.returncode == 1 and "links to docs/no_such_file.md, which is not there" in done.stderr


def test_conda_recipe():
    """It names the version of the citation, and what pyproject.toml does: Python, requirements, command; matplotlib without windows."""
    recipe, project = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text()), PROJECT["project"]
    assert recipe["context"]["version"] == CITATION["version"]
    python = recipe["context"]["python_min"]
    assert project["requires-python"] == f">={python}"
    needed = [re.sub(r"(>=)", r" \1", line).replace("matplotlib ", "matplotlib-base ") for line in project["dependencies"]]
    assert recipe["requirements"]["run"] == ["python >=${{ python_min }}", *needed]
    builders = [line.replace(">=", " >=") for line in PROJECT["build-system"]["requires"]]
    assert recipe["requirements"]["host"] == ["python ${{ python_min }}.*", "pip", *builders]
    assert recipe["build"]["python"]["entry_points"] == [f"{name} = {place}" for name, place in project["scripts"].items()]
    about = recipe["about"]
    assert (about["summary"], about["license"]) == (project["description"], project["license"])
    assert (ROOT / about["license_file"]).is_file() and about["repository"] == project["urls"]["Source"]


def test_conda_recipe_is_read():
    """By rattler-build itself, which refuses a field or a value that it does not know."""
    rattler_build = pytest.importorskip("rattler_build", reason="needs py-rattler-build, which .github/workflows/release.yml installs")
    (made,) = rattler_build.Stage0Recipe.from_yaml((ROOT / "conda" / "recipe.yaml").read_text()).render(rattler_build.VariantConfig())
    assert f"package='odesim', version='{CITATION['version']}'" in repr(made)
