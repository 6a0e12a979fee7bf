"""Asks twenty at a time, without looking at proxy variables."""

import asyncio

import aiohttp


async def main() -> None:
    async with aiohttp.ClientSession() as session:

        async def ask(path: str) -> str:
            async with session.get(f"https://api.example.com{path}") as answer:
                return await answer.text()

        many = await asyncio.gather(*(ask("/items/1") for _ in range(20)))
        assert await ask("/stream") == "data: 1data: 2"
        print(many[-1])


asyncio.run(main())
