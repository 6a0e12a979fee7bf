"""Invented rows for the catalog, in the layout of the public files."""

import random
from pathlib import Path


def invented_rows(folder: Path, seed: int) -> Path:
    """A folder with invented airports and weather, in the layout of the public files."""
    chance = random.Random(seed)
    states = [state for state, count in (("CO", 220), ("UT", 170), ("NM", 60), ("WY", 25)) for _ in range(count)]
    airports = ["iata,name,city,state,country,latitude,longitude"]
    for number, state in enumerate(states):
        city = f"{chance.choice(['San ', 'Mount ', ''])}Place {int(chance.random() ** 3 * 30)}"
        place = f"{chance.uniform(31, 45):.6f},{chance.uniform(-114, -102):.6f}"
        country = "Elsewhere" if number % 50 == 7 else "USA"
        airports.append(f'Q{number:03d},"Field {number}",{city},{state},{country},{place}')
    weather = ["date,precipitation,temp_max,temp_min,wind,weather"]
    for day in range(1, 365):
        date = f"2020/{day // 31 + 1:02d}/{day % 31 + 1:02d}"
        cold = chance.randrange(-50, 200) / 10
        warm, wet, wind = (
            cold + chance.randrange(0, 150) / 10,
            chance.randrange(0, 400) / 10,
            chance.randrange(5, 90) / 10,
        )
        weather.append(
            f"{date},{wet:.1f},{warm:.1f},{cold:.1f},{wind:.1f},{chance.choice(['sun', 'rain', 'sun', 'fog'])}"
        )
    folder.mkdir(exist_ok=True)
    (folder / "airports.csv").write_text("\n".join(airports) + "\n")
    (folder / "seattle-weather.csv").write_text("\n".join(weather) + "\n")
    return folder
