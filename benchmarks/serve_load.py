"""Readers of ``kblrn serve`` on this machine: errors, latency, and memory over time.

Starts the command for a run or a model file, lets a number of clients ask for a
while what the page asks (completion, an entity, answers, reasons), and prints the
time of each kind of request, its 95th percentile, and how memory grew.

    python benchmarks/serve_load.py RUN --clients 50 --seconds 60
"""

import argparse
import http.client
import json
import random
import re
import subprocess
import sys
import threading
import time
from collections import defaultdict
from urllib.parse import urlencode

import numpy as np
import psutil

from kblrn_pyg.table import format_table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", help="the folder of a run, or a model file")
    parser.add_argument("--clients", type=int, default=50, help="(default: 50)")
    parser.add_argument("--seconds", type=float, default=60, help="(default: 60)")
    parser.add_argument(
        "--pause",
        type=float,
        default=0.5,
        help="the mean number of seconds that a reader waits between two requests "
        "(default: 0.5)",
    )
    parser.add_argument("--seed", type=int, default=0, help="(default: 0)")
    options = parser.parse_args()
    command = [sys.executable, "-m", "kblrn_pyg.cli", "serve", options.run]
    command += ["--port", "0", "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        found = re.match(r"http://localhost:(\d+)/", server.stdout.readline())
        if found is None:
            sys.exit("the server did not start")
        is_good = measure(server.pid, int(found[1]), options)
    finally:
        server.terminate()
        server.wait(30)
    sys.exit(0 if is_good else 1)


class Client(threading.Thread):
    """A reader who asks one thing after the other."""

    def __init__(
        self, port: int, seed: int, end: float, pause: float, questions: list
    ) -> None:
        super().__init__(daemon=True)
        self.port, self.random = port, random.Random(seed)
        self.end, self.pause, self.questions = end, pause, questions
        self.times: dict[str, list[float]] = defaultdict(list)
        self.errors: list[str] = []

    def run(self) -> None:
        connection = http.client.HTTPConnection("localhost", self.port, timeout=60)
        while time.monotonic() < self.end:
            try:
                self.read(connection)
            except (OSError, http.client.HTTPException) as error:
                self.errors.append(repr(error))
                connection.close()
        connection.close()

    def read(self, connection: http.client.HTTPConnection) -> None:
        """Asks what the page asks for one question."""
        name, entity, relation, side = self.random.choice(self.questions)
        for letters in (name[:2], name[:4]):
            self.get(connection, "entities", q=letters)
        self.get(connection, "entity", entity=entity)
        asked = {"entity": entity, "relation": relation, "side": side}
        answers = self.get(connection, "answers", **asked)
        self.get(connection, "alone", **asked)
        if answers:
            best = self.random.choice(answers["answers"])["entity"]["key"]
            self.get(connection, "explanation", answer=best, **asked)

    def get(
        self, connection: http.client.HTTPConnection, path: str, **query: str
    ) -> dict | None:
        time.sleep(self.random.expovariate(1 / self.pause) if self.pause else 0)
        begin = time.monotonic()
        connection.request("GET", f"/api/{path}?{urlencode(query)}")
        response = connection.getresponse()
        content = response.read()
        self.times[path].append(time.monotonic() - begin)
        if response.status != 200:
            self.errors.append(f"{response.status} {path} {query}")
            return None
        return json.loads(content)


def measure(pid: int, port: int, options: argparse.Namespace) -> bool:
    questions = find_questions(port, options.seed)
    # What is compiled or read at the first request is not measured.
    first = Client(port, 0, 0, 0, questions)
    connection = http.client.HTTPConnection("localhost", port, timeout=600)
    for _ in range(3):
        first.read(connection)
    connection.close()
    print_alone(port, questions)
    end = time.monotonic() + options.seconds
    clients = [
        Client(port, options.seed + i, end, options.pause, questions)
        for i in range(options.clients)
    ]
    for client in clients:
        client.start()
    process, memory = psutil.Process(pid), []
    while time.monotonic() < end:
        memory.append(process.memory_info().rss / 2**20)
        time.sleep(0.5)
    for client in clients:
        client.join(60)
    return print_results(clients, memory, options)


def find_questions(port: int, seed: int) -> list[tuple[str, str, str, str]]:
    """Returns questions about entities that completion finds."""
    connection = http.client.HTTPConnection("localhost", port, timeout=600)

    def get(path: str, **query: object) -> list | dict:
        connection.request("GET", f"/api/{path}?{urlencode(query)}")
        return json.loads(connection.getresponse().read())

    questions = []
    for letter in "abcdefghijklmnoprst":
        for entity in get("entities", q=letter, limit=100):
            page = get("entity", entity=entity["key"])
            for one in page["relations"][:6]:
                key, side = one["relation"]["key"], one["side"]
                questions.append((entity["name"], entity["key"], key, side))
    connection.close()
    random.Random(seed).shuffle(questions)
    return questions


def print_alone(port: int, questions: list) -> None:
    """Prints how long a single reader waits for answers that nobody asked before."""
    client = Client(port, 1, 0, 0, questions)
    connection = http.client.HTTPConnection("localhost", port, timeout=60)
    for _, entity, relation, side in questions[:40]:
        asked = {"entity": entity, "relation": relation, "side": side}
        found = client.get(connection, "answers", **asked)
        if found:
            best = found["answers"][0]["entity"]["key"]
            client.get(connection, "explanation", answer=best, **asked)
    connection.close()
    print("one reader, new questions")
    print_times(client.times)


def print_times(times: dict[str, list[float]]) -> None:
    rows = [
        [path, len(values), *(f"{x:.0f}" for x in summary(values))]
        for path, values in times.items()
    ]
    header = ["request", "number", "median ms", "95 % ms", "max ms"]
    print(format_table(header, rows), end="\n\n")


def summary(values: list[float]) -> list[float]:
    milliseconds = 1000 * np.array(values)
    return [*np.quantile(milliseconds, [0.5, 0.95]).tolist(), milliseconds.max()]


def print_results(
    clients: list[Client], memory: list[float], options: argparse.Namespace
) -> bool:
    times: dict[str, list[float]] = defaultdict(list)
    for client in clients:
        for path, values in client.times.items():
            times[path] += values
    every = [value for values in times.values() for value in values]
    print(f"{options.clients} readers for {options.seconds:g} seconds")
    print_times({**times, "all": every})
    errors = [error for client in clients for error in client.errors]
    third = len(memory) // 3
    early, late = max(memory[third : 2 * third]), max(memory[2 * third :])
    print(f"{len(every) / options.seconds:.0f} requests a second, {len(errors)} errors")
    print(*errors[:5], sep="\n", end="\n" if errors else "")
    print(
        f"memory {memory[0]:.0f} MB at first, at most {early:.0f} MB in the second "
        f"third and {late:.0f} MB in the last"
    )
    return not errors and late < 1.05 * early


if __name__ == "__main__":
    main()
