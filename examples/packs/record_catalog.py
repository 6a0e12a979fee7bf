"""Records the pack `catalog-v1` anew: from a datasette that this script starts, by the careful agent.

    python3 examples/packs/record_catalog.py                              # the public data, into catalog-v1
    python3 examples/packs/record_catalog.py --shuffle 7 --out /tmp/other # other data of the same shape
    python3 examples/packs/record_catalog.py --data DIR --out /tmp/mine   # your airports.csv, seattle-weather.csv

It needs scoresheet in the Python that runs it. Datasette, and the package that ships the data, come from PyPI into a
throw-away virtual environment; `--datasette PROGRAM` takes one that is there already. Nothing is installed elsewhere,
and the old pack stays as it is unless the service answers every question as the rows do and all were recorded.
"""

import argparse
import contextlib
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Iterator
from pathlib import Path

import catalog

HERE = Path(__file__).resolve().parent
AGENT = HERE.parent / "agents" / "careful.py"
DATASETTE = "datasette==0.65.5"
DATA = "vega_datasets==0.9.0"
START_S = 30.0

ORIGIN = """# Where catalog-v1 comes from

Recorded by `examples/packs/record_catalog.py` from {service} on the loopback interface.

{data}

Questions and expected answers are written by `examples/packs/catalog.py` from the rows alone (Apache-2.0, as scoresheet
is). The responses are datasette's own bytes; datasette (Apache-2.0) is not part of the pack.
"""

PUBLIC = """Both tables are data files of the PyPI package {package} (MIT), which states of them:

- `airports.csv`: US airports, a subset of the data published at ourairports.com, in the public domain.
- `seattle-weather.csv`: daily weather in Seattle from 2012 to 2015, from public-domain NOAA data; the kind of weather
  (`sky` here) was derived from it by the Vega project.

Dates are written with dashes, and rain, temperatures and wind are whole tenths of the original unit."""


def main() -> None:
    arguments = parsed()
    with tempfile.TemporaryDirectory(prefix="catalog-") as scratch:
        work = Path(scratch)
        datasette, folder = service_and_data(arguments, work)
        data = catalog.read(folder)
        about = "The data are the user's own (`--data`)." if arguments.data else PUBLIC.format(package=DATA)
        if arguments.shuffle is not None:
            data = catalog.shuffled(data, arguments.shuffle)
            about += f"\n\nOf the rows two thirds were kept and dealt out anew (`--shuffle {arguments.shuffle}`)."
        catalog.write(data, work / "catalog.db")
        pack = work / "pack"
        pack.mkdir()
        with serving(datasette, work / "catalog.db") as url:
            compare(catalog.questions(data), url)
            record(pack, catalog.questions(data), url, work / "batch.jsonl")
        version = subprocess.run([datasette, "--version"], check=True, capture_output=True, text=True).stdout.strip()
        (pack / "ORIGIN.md").write_text(ORIGIN.format(service=version, data=about), encoding="utf-8")
        scoresheet("freeze", str(pack))
        if (arguments.out / "card.yaml").is_file():
            shutil.copy(
                arguments.out / "card.yaml", pack
            )  # written by hand: it names the old recording until it is mended
        if arguments.out.exists():
            shutil.rmtree(arguments.out)
        shutil.copytree(pack, arguments.out)
    print(f"recorded: {arguments.out}")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Record the pack catalog-v1 anew.")
    parser.add_argument("--out", type=Path, default=HERE / "catalog-v1", help="the pack; replaced when it exists")
    parser.add_argument("--data", type=Path, help="a folder with airports.csv and seattle-weather.csv")
    parser.add_argument("--shuffle", type=int, metavar="SEED", help="other data: the rows sampled and dealt out anew")
    parser.add_argument("--datasette", help="the datasette program to start, instead of one from PyPI")
    return parser.parse_args()


def service_and_data(arguments: argparse.Namespace, work: Path) -> tuple[str, Path]:
    """The program that serves, and the folder that holds the data; installed for this recording when not given."""
    datasette, folder = arguments.datasette, arguments.data
    if datasette and folder:
        return datasette, folder
    environment = work / "venv"
    venv.create(environment, with_pip=True)
    pip = [str(environment / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    if not datasette:
        subprocess.run([*pip, DATASETTE], check=True)
        datasette = str(environment / "bin" / "datasette")
    if not folder:
        subprocess.run([*pip, "--no-deps", DATA], check=True)  # its code wants pandas; its files need nothing
        (folder,) = environment.glob("lib/python3*/site-packages/vega_datasets/_data")
    return datasette, folder


@contextlib.contextmanager
def serving(datasette: str, database: Path) -> Iterator[str]:
    """The address of a datasette that serves the database, read-only, for as long as the block runs."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings = ["--setting", "suggest_facets", "off"]
    with (database.parent / "service.log").open("wb") as log:
        command = [datasette, "serve", "--immutable", str(database), "--port", str(port), *settings]
        service = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        wait_for(f"{url}/-/versions.json", service)
        yield url
    finally:
        service.terminate()
        service.wait()


def free_port() -> int:
    """A port of the loopback interface that nothing listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def wait_for(url: str, service: subprocess.Popen[bytes]) -> None:
    """Come back when the service answers. Ends the script when it does not."""
    end = time.monotonic() + START_S
    while time.monotonic() < end and service.poll() is None:
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            urllib.request.urlopen(url, timeout=5).close()
            return
        time.sleep(0.1)
    sys.exit(f"the service did not answer at {url}")


def compare(questions: tuple[catalog.Question, ...], url: str) -> None:
    """Ask the careful agent everything, live. Ends the script when the service says otherwise than the rows do."""
    for question in questions:
        task = json.dumps({"task_id": question.task_id, "prompt": question.prompt})
        agent = subprocess.run(
            [sys.executable, AGENT], input=task, env={"CATALOG_URL": url}, capture_output=True, text=True, check=True
        )
        if json.loads(agent.stdout) != question.expected:
            sys.exit(f"{question.ask}\n  the rows say {question.expected}\n  the service said {agent.stdout}")


def record(pack: Path, questions: tuple[catalog.Question, ...], url: str, batch: Path) -> None:
    """Record every question, asked of the careful agent."""
    lines = (
        json.dumps({"task_id": question.task_id, "prompt": question.prompt, "expected": question.expected})
        for question in questions
    )
    batch.write_text("\n".join(lines) + "\n", encoding="utf-8")
    upstream = f"CATALOG_URL={url}"
    scoresheet("record", str(pack), "--batch", str(batch), "--upstream", upstream, "--", sys.executable, str(AGENT))


def scoresheet(*arguments: str) -> None:
    """Run a verb of the command line, in the Python that runs this script."""
    subprocess.run([sys.executable, "-m", "scoresheet", *arguments], check=True)


if __name__ == "__main__":
    main()
