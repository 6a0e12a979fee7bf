"""A planted corpus: secrets and customers' data made when the tests run, so that none is ever committed, and decoys."""

import base64
import json
import random
import string
import uuid
from collections.abc import Callable

from scoresheet.gate.leak_numbers import luhn

LETTERS = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
COPIES = 10


class Maker:
    """Makes things that look real, the same ones for a seed."""

    def __init__(self, seed: int = 20260922) -> None:
        self.random = random.Random(seed)

    def text(self, length: int, alphabet: str = LETTERS) -> str:
        return "".join(self.random.choices(alphabet, k=length))

    def hex(self, length: int) -> str:
        return self.text(length, HEX)

    def upper(self, length: int) -> str:
        return self.text(length, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")

    def password(self) -> str:
        return self.text(7) + self.text(1, string.digits) + self.text(1, "!$_-.") + self.text(6)

    def base64(self, size: int) -> str:
        return base64.b64encode(self.random.randbytes(size)).decode()

    def private_key(self, kind: str) -> str:
        body = self.base64(600)
        lines = "\n".join(body[at : at + 64] for at in range(0, len(body), 64))
        dashes = "-" * 5
        return f"{dashes}BEGIN {kind}{dashes}\n{lines}\n{dashes}END {kind}{dashes}\n"

    def jwt(self) -> str:
        parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": self.hex(12), "iat": 1790000000})
        head = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
        return f"{head}.{self.text(43)}"

    def digits(self, length: int) -> str:
        return self.text(length, string.digits)

    def card(self, prefix: str, length: int) -> str:
        while True:
            number = prefix + self.digits(length - len(prefix))
            if luhn(number.encode()):
                return number

    def iban(self) -> str:
        account = self.digits(18)
        check = 98 - int(account + "131400") % 97  # DE is 13 14
        return f"DE{check:02}{account}"


SECRETS: dict[str, Callable[[Maker], str]] = {
    "aws key id": lambda m: f"aws_access_key_id = AKIA{m.upper(16)}",
    "aws secret": lambda m: f"aws_secret_access_key = {m.text(40, LETTERS + '+/')}",
    "github classic": lambda m: f'token: "ghp_{m.text(36)}"',
    "github fine-grained": lambda m: f"GH=github_pat_{m.text(22)}_{m.text(59)}",
    "gitlab": lambda m: f"git clone with glpat-{m.text(20)}",
    "slack bot": lambda m: f"SLACK=xoxb-{m.digits(12)}-{m.digits(12)}-{m.text(24)}",
    "slack webhook": lambda m: f"https://hooks.slack.com/services/T{m.upper(9)}/B{m.upper(9)}/{m.text(24)}",
    "anthropic": lambda m: f"key sk-ant-api03-{m.text(93)}AA",
    "openai": lambda m: f"OPENAI=sk-proj-{m.text(40)}T3BlbkFJ{m.text(40)}",
    "openai old": lambda m: json.dumps({"k": f"sk-{m.text(48)}"}),
    "stripe": lambda m: f"charge with sk_live_{m.text(24)} now",
    "google": lambda m: f"https://maps.googleapis.com/maps?key=AIza{m.text(35)}",
    "google oauth": lambda m: json.dumps({"client": f"GOCSPX-{m.text(28)}"}),
    "hugging face": lambda m: f"hf_{m.text(34)}",
    "npm": lambda m: f"//registry/:_authToken=npm_{m.text(36)}",
    "pypi": lambda m: f"upload pypi-AgEIcHlwaS5vcmc{m.text(100)}",
    "sendgrid": lambda m: f"SG.{m.text(22)}.{m.text(43)}",
    "digitalocean": lambda m: f"do: dop_v1_{m.hex(64)}",
    "telegram": lambda m: f"bot {m.random.randrange(10**8, 10**9)}:AA{m.text(33)}",
    "azure": lambda m: f"AccountName=a;AccountKey={m.base64(64)};EndpointSuffix=core",
    "jwt": lambda m: f"session {m.jwt()} ok",
    "rsa key": lambda m: m.private_key("RSA PRIVATE " + "KEY"),
    "openssh key": lambda m: m.private_key("OPENSSH PRIVATE " + "KEY"),
    "key in json": lambda m: json.dumps({"private_key": m.private_key("PRIVATE " + "KEY"), "type": "service_account"}),
    "database url": lambda m: f"postgresql://svc_{m.text(4)}:{m.password()}@db-1.corp.internal:5432/app",
    "bearer": lambda m: f"Authorization: Bearer {m.text(40)}",
    "basic": lambda m: f'["Authorization", "Basic {base64.b64encode(f"svc:{m.password()}".encode()).decode()}"]',
    "api key header": lambda m: json.dumps([["X-Api-Key", m.text(32)]]),
    "json password": lambda m: json.dumps({"user": "svc", "password": m.password()}),
    "python secret": lambda m: f"CLIENT_SECRET = '{m.text(32)}'",
    "env password": lambda m: f"export DB_PASSWORD={m.password()}",
    "yaml api key": lambda m: f"  api_key: {m.hex(32)}\n",
    "json in json": lambda m: json.dumps({"response_bytes": json.dumps({"access_token": m.text(40)})}),
    "query": lambda m: f"GET /v1/items?limit=5&api_key={m.text(32)}&page=2",
    "session cookie": lambda m: json.dumps([["Set-Cookie", f"sessionid={m.text(32)}; Path=/; HttpOnly"]]),
    "groq": lambda m: f"gsk_{m.text(52)}",
}

PII: dict[str, Callable[[Maker], str]] = {
    "e-mail in a row": lambda m: f"{m.digits(4)},{m.text(6, string.ascii_lowercase)}.{m.text(7, HEX)}@gmx.de,open",
    "e-mail in json": lambda m: json.dumps({"customer": f"{m.text(8, string.ascii_lowercase)}@northwind-traders.com"}),
    "e-mail escaped": lambda m: f"user%3D{m.text(8, string.ascii_lowercase)}%40bluewin.ch%26x",
    "phone, international": lambda m: f"call +49 30 {m.random.randrange(20000000, 99999999)} today",
    "phone by its name": lambda m: json.dumps({"phone": f"({m.random.randrange(201, 989)}) 867-{m.digits(4)}"}),
    "visa": lambda m: json.dumps({"pan": m.card("4", 16)}),
    "amex in groups": lambda m: "{} {} {}".format(*(lambda c: (c[:4], c[4:10], c[10:]))(m.card("37", 15))),
    "iban": lambda m: f"pay to {m.iban()} please",
    "social security": lambda m: (
        f"SSN {m.random.randrange(100, 665)}-{m.random.randrange(10, 99)}-{m.random.randrange(1000, 9999)}"
    ),
}

DECOYS: dict[str, Callable[[Maker], str]] = {
    "sha256 row": lambda m: json.dumps({"sha256": m.hex(64), "size": 123}),
    "git sha": lambda m: f"commit {m.hex(40)}\nAuthor: Jo Doe <jo.doe{m.digits(2)}@gmx.de>\n",
    "npm lock": lambda m: json.dumps(
        {"integrity": f"sha512-{m.base64(64)}", "resolved": "https://registry.example.org/x"}
    ),
    "pip lock": lambda m: f"requests==2.32.3 \\\n    --hash=sha256:{m.hex(64)}\n",
    "poetry lock": lambda m: f'files = [{{file = "a-1.0-py3-none-any.whl", hash = "sha256:{m.hex(64)}"}}]',
    "cargo lock": lambda m: f'[[package]]\nname = "serde"\nchecksum = "{m.hex(64)}"\n',
    "go sum": lambda m: f"golang.org/x/net v0.1.0 h1:{m.base64(32)}",
    "uuid": lambda m: json.dumps({"request_id": str(uuid.UUID(int=m.random.getrandbits(128))), "api_key_id": "k1"}),
    "environment": lambda m: f"api_key = os.environ['SERVICE_{m.upper(4)}_API_KEY']\nTOKEN=${{CI_TOKEN_{m.upper(3)}}}",
    "aws example": lambda m: "AKIAIOSFODNN7EXAMPLE and wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "example.com": lambda m: f"{m.text(6)}@example.com, https://u:{m.password()}@example.org/x",
    "test network": lambda m: f"192.0.2.{m.random.randrange(255)} 198.51.100.7 203.0.113.9",
    "token counts": lambda m: json.dumps(
        {"tokens_in": m.random.randrange(10**6), "max_tokens": 4096, "token_count": 7}
    ),
    "licence": lambda m: f"Copyright (c) 20{m.digits(2)} Jo Doe <jo{m.digits(3)}@posteo.net>\nLicensed under MIT",
    "author": lambda m: f'author = "Jo Doe <jo.{m.text(3, string.ascii_lowercase)}@fastmail.com>"',
    "base64 image": lambda m: f"data:image/png;base64,iVBORw0KGgo{m.base64(900)}",
    "snowflake": lambda m: json.dumps({"id": m.random.randrange(10**18, 2 * 10**18), "tweet_id": m.digits(19)}),
    "timestamps": lambda m: f"1790{m.digits(9)} 2026-11-30T12:00:00.{m.digits(6)}+01:00 20261130{m.digits(6)}",
    "test cards": lambda m: "4242424242424242 4111 1111 1111 1111 378282246310005",
    "documented phones": lambda m: f"+1 202 555 01{m.digits(2)}, (212) 555-01{m.digits(2)}",
    "placeholder": lambda m: "password: <your password>\napi_key: REPLACE_ME_PLEASE\nsecret: 'changeme123'",
    "variables": lambda m: (
        "token = request.headers.get('X-Token')\npassword=self._password,\nsecret_key: settings.SECRET"
    ),
    "next page": lambda m: json.dumps({"next_page_token": m.text(44), "cursor": m.text(60)}),
    "signature": lambda m: json.dumps({"sig": m.base64(64), "etag": f'W/"{m.hex(32)}"'}),
    "floats": lambda m: json.dumps({"score": m.random.random(), "at": [m.random.uniform(-90, 90) for _ in range(4)]}),
    "public key": lambda m: m.private_key("PUBLIC KEY") + f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5{m.base64(32)} jo@laptop",
    "certificate": lambda m: m.private_key("CERTIFICATE"),
    "order numbers": lambda m: json.dumps(
        {"order_id": m.digits(16), "tracking_number": m.digits(14), "sku": m.digits(13)}
    ),
    "prose about keys": lambda m: (
        "Set the API key (sk-...) or an AKIA… id; PEM files begin with BEGIN PRIVATE KEY lines."
    ),
    "packages": lambda m: (
        "lodash@4.17.21 react@18.2.0 image@2x.png user@host git@github.com:o/r.git actions/checkout@v4"
    ),
}
