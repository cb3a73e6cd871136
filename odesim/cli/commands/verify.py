"""`odesim verify`: checks statements of the papers."""

import click

from odesim.cli.options import completed
from odesim.cli.tables import echo


@click.command("verify", short_help="Check statements of the papers.")
@click.argument("name", metavar="[CLAIM|MODEL|FAMILY]", required=False, shell_complete=completed("claims", ending=""))
@click.option("--slow", is_flag=True, help="Check the slow claims (minutes) too.")
@click.option("--list", "listed", is_flag=True, help="List the claims; check none.")
@click.option("--page", is_flag=True, help="Print the claims as a page of Markdown; check none.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.option("--quiet", is_flag=True, help="Print no progress.")
def verify_command(name: str | None, slow: bool, listed: bool, page: bool, as_json: bool, quiet: bool) -> int:
    """Check a claim, the claims of a model or of a family, or all: each is a statement of a paper and a run that shows whether it holds.

    A claim has the statement as printed and, where that fails, the corrected one. Each statement has a recorded verdict;
    if a check gives another one, the exit code is 3.
    """
    from odesim.base.errors import ParamError
    from odesim.claims.ledger import choose_claims
    from odesim.cli.outcome import DONE, STOPPED
    from odesim.cli.output.ledger import ledger_json, ledger_page, ledger_text, list_text

    if sum((listed, page, as_json)) > 1:
        raise ParamError("--list, --page and --json exclude each other")
    if page:
        echo(ledger_page(choose_claims(name, slow=True)))
        return DONE
    if listed:
        echo(list_text(choose_claims(name, slow=True)))
        return DONE
    from odesim.api.verify import verify
    from odesim.cli.tables import Counter

    with Counter("verify", None if not quiet else False) as progress:
        checked = verify(name, slow=slow, progress=lambda done, total, claim: progress.count(done, total, lambda: claim, "claims"))
    echo(ledger_json(checked) if as_json else ledger_text(checked))
    return DONE if checked.as_recorded else STOPPED
