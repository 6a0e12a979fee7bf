import runpy

import pytest
import text.slug

RIGHT = text.slug.slug
MUTANTS = {
    "keeps case": lambda title, longest=40: RIGHT(title, longest).upper(),
    "keeps accents": lambda title, longest=40: title.lower().replace(" ", "-"),
    "hyphen at the end": lambda title, longest=40: RIGHT(title, longest) + "-",
    "doubles hyphens": lambda title, longest=40: RIGHT(title, longest).replace("-", "--"),
    "never cuts": lambda title, longest=40: RIGHT(title, 10**6),
    "cuts, and leaves a hyphen": lambda title, longest=40: RIGHT(title, 10**6)[:longest],
}


def outcomes(monkeypatch, slug):
    monkeypatch.setattr(text.slug, "slug", slug)
    found = runpy.run_path("checks/test_slug.py")
    results = []
    for name, function in found.items():
        if name.startswith("test_") and callable(function):
            try:
                function()
                results.append(True)
            except Exception:
                results.append(False)
    return results


def test_they_pass_as_things_are(monkeypatch):
    found = outcomes(monkeypatch, RIGHT)
    assert found and all(found)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_slug_is_noticed(monkeypatch, name):
    assert not all(outcomes(monkeypatch, MUTANTS[name]))
