"""A catalogue of items: sorted, filtered, counted."""


def by(items, field, descending=False):
    """Items sorted by a field; equal ones keep their order, and those without a value come last, either way."""
    known = [item for item in items if item.get(field) is not None]
    unknown = [item for item in items if item.get(field) is None]
    if descending:
        known = sorted(reversed(known), key=lambda item: item[field])[::-1]
    else:
        known = sorted(known, key=lambda item: item[field])
    return known + unknown


def matching(items, words, fields=("name",)):
    """Items of which one field holds every word, whatever its case; new lists, the items themselves."""
    found = []
    for item in items:
        text = " ".join(str(item.get(field, "")) for field in fields).casefold()
        if all(word.casefold() in text for word in words.split()):
            found.append(item)
    return found


def facets(items, field, into=None):
    """value → how many items have it; added to `into` when that is given."""
    counts = {} if into is None else into
    for item in items:
        counts[item[field]] = counts.get(item[field], 0) + 1
    return counts


def price_band(cents):
    """The band that a price lies in: its lower end belongs to it, its upper end does not."""
    for limit, name in ((1000, "low"), (5000, "middle")):
        if cents <= limit:
            return name
    return "high"
