"""The command itself: verbs loaded only when called, one place where errors become exit codes."""

import errno
import importlib
import keyword
import os
import sys
from collections.abc import Sequence

import click

from scoresheet import __version__
from scoresheet.cli.verbs import VERBS, help_text
from scoresheet.errors import ISSUES, Malformed, Refused, ScoresheetError, Usage

BUG = 70
_PLACES = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENAMETOOLONG, errno.ELOOP)
"""What a system says of a place that was named, or of its disk: no bug."""
_SMALLER = "scoresheet check finds it in a pack or card, scoresheet verify in a run; write the number that is meant"
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
    words = sys.argv[1:] if arguments is None else list(arguments)
    debug = "--debug" in words
    try:
        code = app.main(words, prog_name="scoresheet", standalone_mode=False)
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
        show_usage(error, words)
        return error.exit_code
    except ScoresheetError as error:
        if debug:
            raise
        show(error)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader went away: nothing more to say
        return 0
    except Exception as error:
        if debug:
            raise
        if isinstance(error, OSError) and error.errno in _PLACES and error.filename is not None:
            show(Usage(f"it can't be read or written: {error.strerror}", os.fsdecode(error.filename), _mend_of(error)))
            return Usage.exit_code
        if isinstance(error, ValueError) and str(error).startswith("Exceeds the limit ("):
            show(Malformed("a file holds an integer of thousands of digits, which nothing here writes", mend=_SMALLER))
            return Malformed.exit_code
        say(f"error: a bug in scoresheet: {type(error).__name__}: {error}")  # it must end as 70, never as a verdict
        say(f"  mend: run the same command with --debug and report what it prints at {ISSUES}")
        return BUG


def say(text: str) -> None:
    """A line for people, on stderr."""
    click.echo(text, err=True)


def show_usage(error: click.ClickException, arguments: Sequence[str]) -> None:
    """What is wrong with a command line, in the form of every other error; the whole help when nothing was asked."""
    from scoresheet.cli import mends  # 10 ms that only a mistake pays for
    from scoresheet.gate.output import plain

    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
        say(error.format_message())
        return
    context = (error.ctx if isinstance(error, click.UsageError) else None) or _context(arguments)
    say(plain(f"error: {mends.what(error)} — {context.command_path}"))
    say(plain(f"  mend: {mends.of_call(error, context)}"))


def _context(arguments: Sequence[str]) -> click.Context:
    """Of the verb among the arguments: click does not tell it with every error."""
    top = click.Context(app, info_name="scoresheet")
    verb = next((word for word in arguments if not word.startswith("-")), "")
    command = app.get_command(top, verb)
    return top if command is None else click.Context(command, parent=top, info_name=verb)


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
    if mend := _mend(error):
        say("\n".join(map(plain, f"  mend: {mend}".split("\n"))))


def _mend(error: ScoresheetError) -> str:
    """What the error says, else what its cause or its kind lets us say."""
    if error.mend:
        return error.mend
    if isinstance(error, Refused) and error.findings:
        rules = "correct what is named there; the docs have a section on every rule in brackets"
        return "" if any(finding.mend for finding in error.findings) else rules
    if isinstance(error.__cause__, OSError):
        return _mend_of(error.__cause__, "written" in error.what)
    if isinstance(error.__cause__, UnicodeDecodeError):
        return "save it as UTF-8, or name another file"
    return "correct the text there, or name another file" if isinstance(error, Malformed) else ""


def _mend_of(error: OSError, writing: bool = False) -> str:
    from scoresheet.cli import mends

    return mends.of_file(error, writing)
