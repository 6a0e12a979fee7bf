"""Numbers that are a customer's: payment cards, bank accounts, telephones, social security. Pure.

They have no literal to search for, so their shape is: digits become `0`, capitals `A` and dashes blanks. A search for
`0000 0000` then costs what a search for a word costs.
"""

import re
from collections.abc import Iterator

_SHAPE = bytes.maketrans(b"-" + bytes(range(48, 58)) + bytes(range(65, 91)), b" " + b"0" * 10 + b"A" * 26)

_CARD = re.compile(rb"(?<![\w.+/=-])\d(?:[ -]?\d){12,18}(?![\w/+=-]|\.\d)")
_CARD_LENGTHS = (
    (re.compile(rb"4"), (16,)),
    (re.compile(rb"5[1-5]|2(?:22[1-9]|2[3-9]|[3-6]|7[01]|720)"), (16,)),
    (re.compile(rb"3[47]"), (15,)),
    (re.compile(rb"6(?:011|4[4-9]|5)"), (16,)),
    (re.compile(rb"3(?:0[0-5]|[68])"), (14,)),
    (re.compile(rb"35(?:2[89]|[3-8])"), (16,)),
)
_CARD_GROUPS = re.compile(rb"\d+|\d{4}([ -])\d{4}\1\d{4}\1\d{4}|\d{4}([ -])\d{6}\2\d{4,5}")
_TEST_CARDS = frozenset(
    b"4111111111111111 4242424242424242 4012888888881881 5555555555554444 5105105105105100 4000056655665556"
    b" 5200828282828210 2223003122003222 378282246310005 371449635398431 378734493671000 6011111111111117"
    b" 6011000990139424 3056930009020004 36227206271667 30569309025904 38520000023237 3566002020360505 4000000000000002"
    b" 4000000000009995 4000000000000069 4000000000000127 4000002500003155 4000002760003184".split()
)
"""Printed in every payment service's documentation."""
_NAMED_ID = re.compile(
    rb"(?i)(?:id|ids|no|nr|number|num|uuid|time|timestamp|stamp|ts|epoch|nonce|seq|sequence|offset|hash|digest|version|cursor"
    rb"|token|size|bytes|count|total|seed|serial|sku|isbn|ean|gtin|imei|tracking|at)\\?[\"']?\s{0,4}[:=,]?\s{0,4}\\?[\"']?$"
)
_NAMED_CARD = re.compile(rb"(?i)card|\bpan\b|visa|master|amex|credit|debit|\bcc")

_PHONE = re.compile(
    rb"(?<![\w/+=.])\+(?!\d{4}-\d\d)[1-9]\d{0,2}(?:[ .-]?\(?\d{1,4}\)?)(?:[ .-]?\d{2,4}){2,4}(?![\d\w/+=])"
    rb"|(?<![\w)])(?<!\+\d )\(\d{3}\) ?\d{3}-\d{4}(?![\d-])"
)
NAMED_PHONE = re.compile(
    rb"(?i)(?:phone|mobile|tel|cell|fax|msisdn|whatsapp)(?:[_ -]?(?:number|nr|no))?\\?[\"']?\s{0,4}[:=,]\s{0,4}"
    rb"\\?[\"']?(\+?\(?\d[\d ().-]{7,18}\d)(?![\d.])"
)
_FICTIONAL = re.compile(rb"^1?[2-9]\d\d5550?1\d\d$|^1?\d{3}555\d{4}$|^44(?:7700900|20794609|1632960)|^1?800|^(\d)\1*$")

_SOCIAL = re.compile(rb"(?<![\w.+/=-])(?!000|666|9\d\d)\d{3}-(?!00)\d\d-(?!0000)\d{4}(?![\w/+=-]|\.\d)")
_SPECIMENS = frozenset((b"078-05-1120", b"219-09-9999", b"123-45-6789", b"123-45-6780", b"457-55-5462"))

_IBAN = re.compile(
    rb"(?<![A-Za-z0-9/+=_-])[A-Z]{2}\d{2}(?:(?: [A-Z0-9]{4}){2,7}(?: [A-Z0-9]{1,3})?|[A-Z0-9]{11,30})"
    rb"(?![A-Za-z0-9/+=_-])"
)
_IBAN_LENGTHS = {
    b"AT": 20, b"BE": 16, b"BG": 22, b"CH": 21, b"CY": 28, b"CZ": 24, b"DE": 22, b"DK": 18, b"EE": 20, b"ES": 24,
    b"FI": 18, b"FR": 27, b"GB": 22, b"GR": 27, b"HR": 21, b"HU": 28, b"IE": 22, b"IS": 26, b"IT": 27, b"LI": 21,
    b"LT": 20, b"LU": 20, b"LV": 21, b"MC": 27, b"MT": 31, b"NL": 18, b"NO": 15, b"PL": 28, b"PT": 25, b"RO": 24,
    b"SA": 24, b"SE": 24, b"SI": 19, b"SK": 24, b"SM": 27, b"TR": 26, b"AE": 23, b"IL": 23, b"BR": 29,
}  # fmt: skip
_SPECIMEN_IBANS = frozenset(
    b"DE89370400440532013000 GB29NWBK60161331926819 GB82WEST12345698765432 FR1420041010050500013M02606"
    b" NL91ABNA0417164300 CH9300762011623852957 AT611904300234573201 BE68539007547034 ES9121000418450200051332"
    b" IT60X0542811101000000123456 PL61109010140000071219812874 SE4550000000058398257466 NO9386011117947"
    b" DK5000400440116243 FI2112345600000785 IE29AIBK93115212345678 LU280019400644750000"
    b" PT50000201231234567890154".split()
)
"""The specimens of the IBAN registry."""

PATTERNS = (_CARD, _CARD_GROUPS, _NAMED_ID, _NAMED_CARD, _PHONE, NAMED_PHONE, _FICTIONAL, _SOCIAL, _IBAN)

_RUN = re.compile(rb"0*")

Number = tuple[int, int, bytes, str]
"""Start, end, the number as its digest is taken, rule."""


def numbers(data: bytes) -> Iterator[Number]:
    """Every customer's number in `data`."""
    shape = data.translate(_SHAPE)
    yield from _cards(data, shape)
    for match in _at(_PHONE, data, shape, b"+0", b"(000)"):
        if 9 <= len(digits(match[0])) <= 15 and not is_fictional(match[0]):
            yield match.start(), match.end(), digits(match[0]), "leak-phone"
    for match in _at(_SOCIAL, data, shape, b"000 00 0000"):
        if match[0] not in _SPECIMENS:
            yield match.start(), match.end(), match[0], "leak-social-security"
    for match in _at(_IBAN, data, shape, b"AA00"):
        account = match[0].replace(b" ", b"")
        if is_iban(account) and account not in _SPECIMEN_IBANS:
            yield match.start(), match.end(), account, "leak-iban"


def luhn(number: bytes) -> bool:
    """True when the check digit holds (ISO/IEC 7812-1)."""
    total = 0
    for place, char in enumerate(reversed(number)):
        digit = char - 48
        if place % 2:
            digit = digit * 2 - 9 if digit > 4 else digit * 2
        total += digit
    return total % 10 == 0


def is_iban(account: bytes) -> bool:
    """True when length and check digits hold (ISO 13616)."""
    if _IBAN_LENGTHS.get(account[:2]) != len(account):
        return False
    return int("".join(str(int(chr(char), 36)) for char in account[4:] + account[:4])) % 97 == 1


def is_fictional(phone: bytes) -> bool:
    """True for numbers that are set aside for films and documentation, or are no number at all."""
    plain = digits(phone)
    return bool(_FICTIONAL.search(plain)) or len(set(plain)) <= 2 or plain in b"012345678901234567890" * 2


def digits(text: bytes) -> bytes:
    """The digits of a text alone."""
    return bytes(char for char in text if 48 <= char <= 57)


def _cards(data: bytes, shape: bytes) -> Iterator[Number]:
    anchors = (b"0" * 14, b"0000 0000 0000", b"0000 000000 0")
    for match in _at(_CARD, data, shape, *anchors):
        number = digits(match[0])
        if (
            number not in _TEST_CARDS
            and _CARD_GROUPS.fullmatch(match[0])
            and any(start.match(number) and len(number) in lengths for start, lengths in _CARD_LENGTHS)
            and len(set(number)) > 3
            and luhn(number)
        ):
            before = data[max(0, match.start() - 40) : match.start()]
            if not match[0].isdigit() or _NAMED_CARD.search(before) or not _NAMED_ID.search(before):
                yield match.start(), match.end(), number, "leak-payment-card"


def _at(pattern: re.Pattern[bytes], data: bytes, shape: bytes, *anchors: bytes) -> Iterator[re.Match[bytes]]:
    """Matches of `pattern` that begin where the shape of `data` holds an anchor."""
    for anchor in anchors:
        at = shape.find(anchor)
        while at >= 0:
            match = pattern.match(data, at, at + 64)
            if match is not None:
                yield match
                at = shape.find(anchor, match.end())
            elif anchor.isdigit():  # nothing begins inside a run of digits
                at = shape.find(anchor, _RUN.match(shape, at).end())  # type: ignore[union-attr]  # matches anywhere
            else:
                at = shape.find(anchor, at + 1)
