"""The catalog: its two tables, and questions about them with answers worked out here, in plain Python over the rows.

Nothing here knows the service that will hold the tables or the agent that will be asked: what an answer should be
rests on the data alone. The questions follow the data too. Other rows give other states, thresholds and answers, and a
question whose answer would be a tie is asked about something else.
"""

import csv
import random
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = dict[str, Any]

HOW = """
The catalog is a datasette whose address is in CATALOG_URL. TABLE and COLUMN are named in the question. FILTERS has one
parameter for each condition, in their order: COLUMN__exact=VALUE for `is`, and likewise __not for `is not`, __gte for
`is at least`, __lte for `is at most`, __contains for `contains`. Ask with GET and with no other parameters than these:
  Count          /catalog/TABLE.json?FILTERS&_size=0
                 answer {"count": filtered_table_rows_count}
  Sum            /catalog/TABLE.json?FILTERS&_size=100&_shape=objects
                 add COLUMN of all rows; while `next` is not null, ask for the next page with _next=NEXT added
                 answer {"sum": N}
  List           the pages of Sum; answer {"list": [COLUMN of every row, in the order of the pages]}
  Most frequent  /catalog/TABLE.json?FILTERS&_size=0&_facet=COLUMN
                 answer {"value": VALUE, "count": N} with the first of facet_results.COLUMN.results
  Largest        /catalog/TABLE.json?FILTERS&_size=1&_shape=objects&_sort_desc=COLUMN (smallest: _sort=COLUMN)
                 answer {"value": what the question wants of the first row}
  Row            /catalog/TABLE/KEY.json?_shape=objects
                 answer {"value": what the question wants of the first row}
  Query          /catalog.json?sql=QUERY&_shape=objects
                 answer {"value": what the question wants of the first row}
When the status is not 200, ask nothing more and answer {"error": STATUS}.
"""


@dataclass(frozen=True)
class Data:
    """The rows of both tables, in the order of their keys."""

    airports: tuple[Row, ...]
    weather: tuple[Row, ...]


@dataclass(frozen=True)
class Question:
    """One task to record."""

    task_id: str
    ask: str
    expected: dict[str, Any]

    @property
    def prompt(self) -> str:
        return f"{self.ask}\n{HOW}"


# The data -----------------------------------------------------------------------------------------------------------


def read(folder: Path) -> Data:
    """The tables in `airports.csv` and `seattle-weather.csv`; measures as whole tenths, so that sums are exact."""
    with (folder / "airports.csv").open(encoding="utf-8", newline="") as file:
        airports = [
            {**row, "latitude": float(row["latitude"]), "longitude": float(row["longitude"])}
            for row in csv.DictReader(file)
        ]
    with (folder / "seattle-weather.csv").open(encoding="utf-8", newline="") as file:
        weather = [
            {
                "date": row["date"].replace("/", "-"),
                "rain": tenths(row["precipitation"]),
                "max_temp": tenths(row["temp_max"]),
                "min_temp": tenths(row["temp_min"]),
                "wind": tenths(row["wind"]),
                "sky": row["weather"],
            }
            for row in csv.DictReader(file)
        ]
    return Data(by_key(airports), by_key(weather))


def tenths(text: str) -> int:
    return round(float(text) * 10)


def by_key(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The rows sorted by their first column, which is their key."""
    return tuple(sorted(rows, key=lambda row: str(next(iter(row.values())))))


def shuffled(data: Data, seed: int) -> Data:
    """Other data of the same shape: two thirds of the rows, each column but the key dealt out anew."""
    chance = random.Random(seed)
    return Data(*(dealt(rows, chance) for rows in (data.airports, data.weather)))


def dealt(rows: tuple[Row, ...], chance: random.Random) -> tuple[Row, ...]:
    kept = by_key(chance.sample(rows, len(rows) * 2 // 3))
    columns = {name: [row[name] for row in kept] for name in kept[0]}
    for values in list(columns.values())[1:]:
        chance.shuffle(values)
    return tuple(dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))


def write(data: Data, database: Path) -> None:
    """Write both tables into a new SQLite file."""
    with sqlite3.connect(database) as connection:
        connection.execute(
            "create table airports (iata text primary key, name text, city text, state text, country text,"
            " latitude real, longitude real)"
        )
        connection.execute(
            "create table weather (date text primary key, rain integer, max_temp integer, min_temp integer,"
            " wind integer, sky text)"
        )
        for name, rows in (("airports", data.airports), ("weather", data.weather)):
            marks = ", ".join("?" * len(rows[0]))
            connection.executemany(f"insert into {name} values ({marks})", [tuple(row.values()) for row in rows])
    connection.close()


# The questions ------------------------------------------------------------------------------------------------------


def questions(data: Data) -> tuple[Question, ...]:
    """Every question, about these rows."""
    numbers: Counter[str] = Counter()
    found = []
    for kind, ask, expected in asked(data):
        numbers[kind] += 1
        found.append(Question(f"catalog.{kind}.{numbers[kind]}", ask, expected))
    return tuple(found)


def asked(data: Data) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(kind, question, answer) of every question."""
    airports, weather = data.airports, data.weather
    states = [state for state, _ in Counter(row["state"] for row in airports).most_common()]
    skies = [sky for sky, _ in Counter(row["sky"] for row in weather).most_common()]
    first, last = weather[0]["date"], weather[-1]["date"]
    of_state = {state: [row for row in airports if row["state"] == state] for state in states}
    of_sky = {sky: [row for row in weather if row["sky"] == sky] for sky in skies}
    small = next(state for state in reversed(states) if 2 <= len(of_state[state]) <= 100)
    large = next((state for state in reversed(states) if len(of_state[state]) > 100), states[0])  # two pages or more
    half = weather[len(weather) // 8]["date"]
    wet = sorted(row["rain"] for row in weather)[-12]

    # filtered
    yield "count", f'Count the rows of airports where state is "{states[0]}".', count(of_state[states[0]])
    middle = round(sorted(row["latitude"] for row in of_state[states[1]])[len(of_state[states[1]]) // 2])
    yield (
        "count",
        f'Count the rows of airports where state is "{states[1]}" and latitude is at least "{middle}".',
        count(row for row in of_state[states[1]] if row["latitude"] >= middle),
    )
    yield (
        "count",
        f'Count the rows of weather where sky is not "{skies[0]}" and wind is at most "25".',
        count(row for row in weather if row["sky"] != skies[0] and row["wind"] <= 25),
    )
    yield (
        "count",
        'Count the rows of airports where city contains "San " and country is "USA".',
        count(row for row in airports if "san " in row["city"].lower() and row["country"] == "USA"),
    )
    yield "count", 'Count the rows of airports where state is "Atlantis".', count([])

    # page after page
    yield (
        "sum",
        f'Sum rain of weather where date is at least "{first}" and date is at most "{half}".',
        total("rain", (row for row in weather if row["date"] <= half)),
    )
    yield "sum", f'Sum wind of weather where sky is "{skies[1]}".', total("wind", of_sky[skies[1]])
    yield (
        "sum",
        'Sum max_temp of weather where date contains "-07-".',
        total("max_temp", (row for row in weather if "-07-" in row["date"])),
    )
    yield (
        "sum",
        f'Sum min_temp of weather where rain is at least "100" and date is at most "{last}".',
        total("min_temp", (row for row in weather if row["rain"] >= 100)),
    )
    yield "list", f'List iata of airports where state is "{small}".', listed("iata", of_state[small])
    yield "list", f'List iata of airports where state is "{large}".', listed("iata", of_state[large])
    yield (
        "list",
        f'List date of weather where rain is at least "{wet}".',
        listed("date", (row for row in weather if row["rain"] >= wet)),
    )
    yield (
        "list",
        'List iata of airports where country is not "USA".',
        listed("iata", (row for row in airports if row["country"] != "USA")),
    )

    # faceted
    yield "facet", "Name the most frequent state of airports.", most_frequent("state", airports)
    yield "facet", "Name the most frequent sky of weather.", most_frequent("sky", weather)
    state = next(state for state in states if leads("city", of_state[state]))
    yield (
        "facet",
        f'Name the most frequent city of airports where state is "{state}".',
        most_frequent("city", of_state[state]),
    )
    cuts = (len(weather) * eighths // 8 for eighths in (6, 5, 4, 3, 2))
    recent = next(weather[cut:] for cut in cuts if leads("sky", weather[cut:]))
    late = recent[0]["date"]
    yield (
        "facet",
        f'Name the most frequent sky of weather where date is at least "{late}".',
        most_frequent("sky", recent),
    )

    # sorted
    yield (
        "sort",
        "Give iata of the row of airports with the largest latitude.",
        end("iata", airports, "largest", "latitude"),
    )
    size, column = next(
        (size, column)
        for column in ("rain", "max_temp", "wind", "min_temp")
        for size in ("largest", "smallest")
        if alone(weather, size, column)
    )
    yield (
        "sort",
        f"Give date of the row of weather with the {size} {column}.",
        end("date", weather, size, column),
    )
    state = next(state for state in states if alone(of_state[state], "smallest", "longitude"))
    yield (
        "sort",
        f'Give iata of the row of airports with the smallest longitude where state is "{state}".',
        end("iata", of_state[state], "smallest", "longitude"),
    )
    sky = next(sky for sky in skies if alone(of_sky[sky], "smallest", "min_temp"))
    yield (
        "sort",
        f'Give date of the row of weather with the smallest min_temp where sky is "{sky}".',
        end("date", of_sky[sky], "smallest", "min_temp"),
    )

    # one row
    for row in (airports[len(airports) // 3], airports[len(airports) // 2]):
        yield "row", f"Give city of row {row['iata']} of airports.", {"value": row["city"]}
    row = weather[len(weather) // 2]
    yield "row", f"Give max_temp of row {row['date']} of weather.", {"value": row["max_temp"]}

    # SQL
    cities = {row["city"] for row in of_state[states[2]]}
    yield (
        "query",
        f"Give n of the query `select count(distinct city) as n from airports where state = '{states[2]}'`.",
        {"value": len(cities)},
    )
    most = max(len(rows) for rows in of_state.values())
    yield (
        "query",
        "Give n of the query `select max(n) as n from (select count(*) as n from airports group by state)`.",
        {"value": most},
    )
    span = max(row["max_temp"] - row["min_temp"] for row in weather)
    yield "query", "Give span of the query `select max(max_temp - min_temp) as span from weather`.", {"value": span}

    # refused by the service
    yield "fails", "Give city of row NOWHERE of airports.", {"error": 404}
    yield "fails", 'Count the rows of harbours where state is "AK".', {"error": 404}
    yield "fails", "Give n of the query `delete from airports`.", {"error": 400}
    yield "fails", "Give n of the query `select altitude as n from airports`.", {"error": 400}
    yield "fails", "Name the most frequent altitude of airports.", {"error": 400}
    yield "fails", "Give iata of the row of airports with the largest altitude.", {"error": 500}


# The answers --------------------------------------------------------------------------------------------------------


def count(rows: Iterable[Row]) -> dict[str, Any]:
    return {"count": sum(1 for _ in rows)}


def total(column: str, rows: Iterable[Row]) -> dict[str, Any]:
    return {"sum": sum(row[column] for row in rows)}


def listed(column: str, rows: Iterable[Row]) -> dict[str, Any]:
    return {"list": [row[column] for row in rows]}


def most_frequent(column: str, rows: Iterable[Row]) -> dict[str, Any]:
    """The value that most rows hold. Raises `ValueError` for a tie: such a question has no right answer."""
    (value, most), *others = Counter(row[column] for row in rows).most_common(2)
    if others and others[0][1] == most:
        raise ValueError(f"{value} and {others[0][0]} are equally frequent in {column}")
    return {"value": value, "count": most}


def leads(column: str, rows: Iterable[Row]) -> bool:
    """Whether one value is more frequent than every other."""
    counts = [most for _, most in Counter(row[column] for row in rows).most_common(2)]
    return len(counts) == 1 or counts[0] > counts[1]


def end(wanted: str, rows: Iterable[Row], size: str, column: str) -> dict[str, Any]:
    """What the row at the end of a sorting holds. Raises `ValueError` when two rows share that end."""
    rows = tuple(rows)
    if not alone(rows, size, column):
        raise ValueError(f"two rows have the {size} {column}")
    pick = max if size == "largest" else min
    return {"value": pick(rows, key=lambda row: row[column])[wanted]}


def alone(rows: Iterable[Row], size: str, column: str) -> bool:
    """Whether exactly one row has the largest (or smallest) value."""
    values = [row[column] for row in rows]
    return values.count(max(values) if size == "largest" else min(values)) == 1
