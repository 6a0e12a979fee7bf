"""What `run` and `rerun` are told of models: their options, and the models that they name."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from scoresheet.documents.run_plan import RunPlan
    from scoresheet.run.admission import Admission
    from scoresheet.run.models import Models
    from scoresheet.run.prices import Prices

F = TypeVar("F", bound=Callable[..., Any])
_OPTIONS = (
    click.option("--model", multiple=True, metavar="KIND=URL", help="A model: openai=https://… or anthropic=https://…"),
    click.option("--model-key-env", multiple=True, metavar="KIND=NAME", help="Its key: a variable that no agent sees."),
    click.option("--record-model", is_flag=True, help="Seal the model's answers, so that they can be replayed."),
    click.option(
        "--replay-model",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        metavar="RUN",
        help="Answer model calls from that run; one that it does not hold ends the episode.",
    ),
    click.option(
        "--max-tokens-total", type=click.IntRange(1), metavar="N", help="Stop when the model calls took so many tokens."
    ),
    click.option("--max-cost", metavar="AMOUNT", help="Stop when they cost so much, in the currency of --prices."),
    click.option(
        "--model-concurrency", multiple=True, metavar="KIND=N", help="Model calls at once, all episodes together."
    ),
)


def options(prices: str) -> Callable[[F], F]:
    """The options of models; `prices` is the help of `--prices`."""
    table = click.option(
        "--prices", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE", help=prices
    )

    def decorate(command: F) -> F:
        for option in reversed((*_OPTIONS[:4], table, *_OPTIONS[4:])):
            command = option(command)
        return command

    return decorate


def refuse_contrary(given: dict[str, Any], *, priced: bool = False) -> None:
    """Raise `Usage` for options that don't go together; `priced`: there is a price table without `--prices`."""
    from scoresheet.errors import Usage

    if given["replay_model"] and (given["model"] or given["model_key_env"] or given["record_model"]):
        mend = "leave --model, --model-key-env and --record-model out"
        raise Usage("a recorded model stands in the place of a real one", "--replay-model", mend)
    for name in ("record_model", "model_concurrency", "max_tokens_total", "max_cost"):
        if given[name] and not given["model"]:
            option = f"--{name.replace('_', '-')}"
            raise Usage(f"{option} needs a model", option, "give --model openai=URL or --model anthropic=URL")
    if given["max_cost"] and not given["prices"] and not priced:
        raise Usage("what tokens cost is not known", "--max-cost", "give --prices FILE (docs/model)")


def models_of(
    plan: "RunPlan", admission: "Admission", given: dict[str, Any], table: "Prices | None" = None
) -> tuple["Models", "RunPlan"]:
    """The models that the options name, within their budget, and the plan that names them.

    `table` prices their tokens where `--prices` names no other. Raises `Usage`, `Refused`, `ScoresheetError`.
    """
    from scoresheet.errors import Usage
    from scoresheet.run import model_recording, prices
    from scoresheet.run.models import Models

    if given["replay_model"]:
        recorded = model_recording.Recorded.of(given["replay_model"], plan.manifest_sha256)
        models = Models.replayed(recorded, admission.card_value)
        plan = plan.model_copy(update={"model_replayed": recorded.planned})
    else:
        upstreams, card = plan.manifest.upstreams, admission.card_value
        models = Models.of(given["model"], given["model_key_env"], upstreams, card, given["model_concurrency"])
    if given["prices"]:
        if not models.kinds:
            raise Usage("--prices needs a model", "--prices", "give --model KIND=URL, or --replay-model RUN")
        table = prices.read(given["prices"])
    if table is not None and models.kinds:
        models = replace(models, prices=table)
        plan = plan.model_copy(update={"prices_sha256": table.sha256})
    models = models.limited(given["max_tokens_total"], given["max_cost"])
    return models, plan.model_copy(update={"model_endpoints": models.places, "model_kinds": models.kinds})
