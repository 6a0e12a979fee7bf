"""The one home of Hypothesis strategies: what a property is true of, by the name of the thing."""

import json

from hypothesis import strategies as st

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
"""Unicode without surrogates: whatever UTF-8 can carry."""

doubles = st.floats(allow_nan=False, allow_infinity=False)
whole = st.one_of(st.integers(-(2**53), 2**53), st.integers(-(10**40), 10**40))
numbers = st.one_of(whole, doubles)
scalars = st.one_of(st.none(), st.booleans(), numbers, text)

json_values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(text, inner, max_size=4)),
    max_leaves=16,
)
"""Any JSON value that `canonical.loads` could give."""

json_objects = st.dictionaries(text, json_values, max_size=5)


@st.composite
def spelt(draw, values=json_values):
    """(value, bytes): a JSON value and one way to write it, with any order of keys, spaces and escapes."""
    value = draw(values)
    space = draw(st.sampled_from(["", " ", "\n", "\t "]))

    def write(item):
        if isinstance(item, dict):
            names = draw(st.permutations(list(item)))
            members = f",{space}".join(f"{quote(name)}{space}:{space}{write(item[name])}" for name in names)
            return f"{{{space}{members}{space}}}"
        if isinstance(item, list):
            return f"[{space}{f'{space},'.join(map(write, item))}]"
        return quote(item) if isinstance(item, str) else json.dumps(item)

    def quote(string):
        return json.dumps(string, ensure_ascii=draw(st.booleans()))

    return value, (space + write(value) + space).encode()
