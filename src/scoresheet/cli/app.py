"""The command itself: verbs loaded only when called, one place where errors become exit codes."""

import importlib
import keyword
import os
import sys
from collections.abc import Sequence

import click

from scoresheet import __version__
from scoresheet.cli.verbs import VERBS, help_text
from scoresheet.errors import ISSUES, Refused, ScoresheetError

BUG = 70
INTERRUPTED = 130


class _Verbs(click.Group):
    """Commands imported when called: `--help` must not pay for them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name.replace("-", "_")  # `import`
        command = importlib.import_module(f"scoresheet.cli.{module}").command
        assert isinstance(command, click.Command)
        return command

    def get_help(self, ctx: click.Context) -> str:
        return help_text()


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="scoresheet")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def app(ctx: click.Context, debug: bool) -> None:
    """Agent scores that travel with their protocol sheet, or are not printed."""
    ctx.obj = {"debug": debug}


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code (docs/exit-codes)."""
    debug = "--debug" in (sys.argv[1:] if arguments is None else arguments)
    try:
        code = app.main(None if arguments is None else list(arguments), prog_name="scoresheet", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.Abort:
        return INTERRUPTED
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except click.ClickException as error:
        show_usage(error)
        return error.exit_code
    except ScoresheetError as error:
        if debug:
            raise
        show(error)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader went away: nothing more to say
        return 0
    except Exception as error:  # a bug must end as 70, never as a verdict
        if debug:
            raise
        say(f"error: a bug in scoresheet: {type(error).__name__}: {error}")
        say(f"  mend: run the same command with --debug and report what it prints at {ISSUES}")
        return BUG


def say(text: str) -> None:
    """A line for people, on stderr."""
    click.echo(text, err=True)


def show_usage(error: click.ClickException) -> None:
    """What is wrong with a command line, in the form of every other error; the whole help when nothing was asked."""
    import difflib  # 10 ms that only a mistake pays for

    context = error.ctx if isinstance(error, click.UsageError) else None
    where = context.command_path if context else "scoresheet"
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
        say(error.format_message())
        return
    what = error.format_message().rstrip(".")
    near = difflib.get_close_matches(what.split("'")[1], VERBS, n=1) if what.startswith("No such command '") else ()
    say(f"error: {what[:1].lower()}{what[1:]} — {where}")
    say(f"  mend: {f'did you mean {near[0]}? ' if near else ''}{where} --help says how to call it")


def show(error: ScoresheetError) -> None:
    """An error as people read it: what and where, then the mend on the next line; every finding of a refusal."""
    from scoresheet.gate.output import plain  # what a file or its name holds may be there to steer the terminal

    if isinstance(error, Refused) and error.findings:
        for finding in error.findings:
            say(plain(f"{finding.severity}: {finding.what} — {finding.where} [{finding.rule}]"))
            if finding.mend:
                say(f"  mend: {plain(finding.mend)}")
        if len(error.findings) > 1:
            say(plain(f"error: {error}: {len(error.findings)} findings"))
    else:
        say("\n".join(map(plain, f"error: {error}".split("\n"))))
    if error.mend:
        say("\n".join(map(plain, f"  mend: {error.mend}".split("\n"))))
