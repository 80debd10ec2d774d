"""How many connections there are, and how long they live."""

import asyncio
from typing import Any

from afresh.fetch import Http, Limits
from afresh.types import Fetched, Validators

PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


class Counting:
    """A server that keeps connections open and counts them: how many there were, and how many worked at once."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.connections = 0
        self.working: dict[str, int] = {}
        self.most: dict[str, int] = {}

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                request = (await reader.readuntil(b"\r\n\r\n")).decode()
                host = next(line for line in request.split("\r\n") if line.startswith("Host:"))
                for key in (host, "all"):
                    self.working[key] = self.working.get(key, 0) + 1
                    self.most[key] = max(self.most.get(key, 0), self.working[key])
                await asyncio.sleep(self.seconds)
                for key in (host, "all"):
                    self.working[key] -= 1
                writer.write(PAGE)
        except (asyncio.IncompleteReadError, asyncio.CancelledError, OSError):
            writer.close()


def fetch(server: Counting, hosts: list[str], *, at_once: bool, **limits: float) -> list[Fetched]:
    async def go() -> list[Fetched]:
        listening = await asyncio.start_server(server.talk, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        http = Http(user_agent="test/1", allow_private=True, limits=Limits(**limits))  # type: ignore[arg-type]
        asking = [http.fetch(f"http://{host}:{port}/{number}", Validators()) for number, host in enumerate(hosts)]
        try:
            return list(await asyncio.gather(*asking)) if at_once else [await each for each in asking]
        finally:
            await http.close()
            listening.close()

    return asyncio.run(go())


def test_a_connection_is_used_again() -> None:
    server = Counting()
    got = fetch(server, ["a.localhost"] * 20, at_once=False)
    assert [each.body for each in got] == [b"hello"] * 20
    assert server.connections == 1


def test_one_connection_of_a_host_is_kept_however_many_there_were() -> None:
    async def go() -> tuple[int, int]:
        server = Counting(0.05)
        listening = await asyncio.start_server(server.talk, "127.0.0.1", 0)
        url = f"http://a.localhost:{listening.sockets[0].getsockname()[1]}/"
        http = Http(user_agent="test/1", allow_private=True)
        await asyncio.gather(*(http.fetch(url, Validators()) for _ in range(5)))
        opened, kept = server.connections, open_connections(http)
        await http.fetch(url, Validators())
        assert server.connections == opened
        await http.close()
        listening.close()
        return opened, kept

    assert asyncio.run(go()) == (5, 1)


def test_connections_in_all_are_limited() -> None:
    server = Counting(0.05)
    got = fetch(server, [f"h{number}.localhost" for number in range(20)], at_once=True, connections=5)
    assert {each.body for each in got} == {b"hello"}
    assert server.most["all"] == 5


def test_waiting_for_a_connection_counts_for_the_deadline() -> None:
    server = Counting(0.3)
    got = fetch(server, ["a.localhost"] * 5, at_once=True, connections=1, seconds=0.5)
    assert sorted({each.reason for each in got}) == ["", "timeout"]


def test_a_broken_fetch_leaves_no_connection_behind() -> None:
    """A body that was given up must not be read as the answer to the next request."""

    async def go() -> list[Fetched]:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while True:
                    request = await reader.readuntil(b"\r\n\r\n")
                    large = b"HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n" + PAGE * 40
                    writer.write(large[:2000] if b"large" in request else PAGE)
            except (asyncio.IncompleteReadError, OSError):
                writer.close()

        listening = await asyncio.start_server(talk, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        http = Http(user_agent="test/1", allow_private=True, limits=Limits(body=1000))
        got = [
            await http.fetch(f"http://127.0.0.1:{port}/{path}", Validators()) for path in ("large", "small", "small")
        ]
        await http.close()
        listening.close()
        return got

    assert [each.reason or each.body for each in asyncio.run(go())] == ["too_large", b"hello", b"hello"]


def test_a_connection_that_closed_while_idle_says_nothing_about_the_page(stage: Any) -> None:
    """The server hangs up when it is asked a second time; that question is asked again, and only that."""

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(PAGE)
        await reader.readuntil(b"\r\n\r\n")

    got = stage.fetch_all(once, urls=("http://127.0.0.1:{port}/a", "http://127.0.0.1:{port}/b"))
    assert [each.body for each in got] == [b"hello", b"hello"]
    assert [each.split()[1] for each in stage.requests] == ["/a", "/b"]

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pass

    stage.requests.clear()
    assert stage.fetch(never).reason == "reset"
    assert len(stage.requests) == 1  # a fresh connection that closes has said something


def test_what_nobody_asked_for_closes_the_connection(stage: Any) -> None:
    async def twice(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(PAGE)
        await asyncio.sleep(0.05)
        writer.write(PAGE.replace(b"hello", b"false"))
        await reader.read()

    async def go() -> list[Fetched]:
        server = await asyncio.start_server(stage._talking(twice, False), "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        http = Http(user_agent="test/1", allow_private=True)
        got = [await http.fetch(url, Validators())]
        await asyncio.sleep(0.15)
        got.append(await http.fetch(url, Validators()))
        await http.close()
        server.close()
        return got

    assert [each.body for each in asyncio.run(go())] == [b"hello", b"hello"]
    assert len(stage.requests) == 2  # each on a connection of its own


def test_a_connection_that_is_to_be_closed_is_not_used_again(stage: Any) -> None:
    async def lazy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(PAGE.replace(b"Content", b"Connection: close\r\nContent", 1))
        stage.requests.append((await reader.read()).decode())  # it says so, and does not do it

    got = stage.fetch_all(lazy, urls=("http://127.0.0.1:{port}/",) * 2)
    assert [each.body for each in got] == [b"hello"] * 2
    assert [each.count("GET") for each in stage.requests][:3] == [1, 0, 1]  # nothing more came on the first one


def open_connections(http: Http) -> int:
    assert http._wire is not None
    assert not http._wire._busy
    return sum(not connection.closed for connection in http._wire._idle.values())


def test_idle_connections_are_few_and_end(stage: Any) -> None:
    async def go() -> list[int]:
        server = Counting()
        listening = await asyncio.start_server(server.talk, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        http = Http(user_agent="test/1", allow_private=True, limits=Limits(idle=5, keep_alive=0.2))
        for number in range(12):
            await http.fetch(f"http://h{number}.localhost:{port}/", Validators())
        counts = [open_connections(http)]
        await asyncio.sleep(0.4)
        counts.append(open_connections(http))
        assert http._wire is not None
        counts.append(len(http._wire._idle))  # nothing is remembered of hosts without connections
        await http.close()
        listening.close()
        return counts

    assert asyncio.run(go()) == [5, 0, 0]


def test_a_fetch_that_is_given_up_gives_its_place_back() -> None:
    async def go() -> list[Fetched]:
        server = Counting(0.2)
        listening = await asyncio.start_server(server.talk, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
        http = Http(user_agent="test/1", allow_private=True, limits=Limits(connections=1))
        for _ in range(5):
            running, waiting = (asyncio.create_task(http.fetch(url, Validators())) for _ in range(2))
            await asyncio.sleep(0.02)
            waiting.cancel()
            running.cancel()
            await asyncio.gather(running, waiting, return_exceptions=True)
        got = [await http.fetch(url, Validators())]
        await http.close()
        listening.close()
        return got

    assert [each.body for each in asyncio.run(go())] == [b"hello"]


def test_closing_ends_what_is_under_way() -> None:
    async def go() -> list[Fetched]:
        server = Counting(5.0)
        listening = await asyncio.start_server(server.talk, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
        http = Http(user_agent="test/1", allow_private=True)
        fetching = [asyncio.create_task(http.fetch(url, Validators())) for _ in range(3)]
        await asyncio.sleep(0.05)
        await http.close()
        got = await asyncio.gather(*fetching)
        listening.close()
        return list(got)

    assert [each.reason for each in asyncio.run(go())] == ["reset"] * 3
