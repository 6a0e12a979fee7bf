"""Sends messages of HTTP byte by byte, each on a connection of its own, and answers how many answers it got.

raw_agent.py one-by-one|at-once MESSAGE… — messages in base64.
"""

import base64
import os
import socket
import sys
import threading

place = os.environ["API"].removeprefix("http://").split(":")
told: list[bytes] = []


def send(message: bytes) -> None:
    answer = b""
    with socket.create_connection((place[0], int(place[1])), timeout=300) as connection:
        connection.sendall(message)
        try:
            while data := connection.recv(65536):
                answer += data
        except ConnectionResetError:
            pass
    told.append(answer)


messages = [base64.b64decode(word) for word in sys.argv[2:]]
if sys.argv[1] == "at-once":
    threads = [threading.Thread(target=send, args=(message,)) for message in messages]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
else:
    for message in messages:
        send(message)
print(f'{{"answers": {len(told)}}}')
