"""Let click parse the arguments and run the command, and report its complaints."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from agentmesh.cli.commands import cli
from agentmesh.cli.outcome import INTERRUPTED, USAGE, failed
from agentmesh.cli.talk import say


def invoke(args: Sequence[str]) -> int:
    """Run the command line; return its exit code."""
    if os.environ.get("_AGENTMESH_COMPLETE"):
        cli.main(list(args), prog_name="agentmesh", complete_var="_AGENTMESH_COMPLETE")
    try:
        with cli.make_context("agentmesh", list(args)) as context:
            code = cli.invoke(context)
            return code if isinstance(code, int) else 0
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        say(error.format_message())
        return USAGE
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "agentmesh"
        return failed(error.format_message(), f"See `{path} --help`.", USAGE)
    except click.ClickException as error:
        return failed(error.format_message(), "", USAGE)
    except click.Abort:
        return INTERRUPTED
