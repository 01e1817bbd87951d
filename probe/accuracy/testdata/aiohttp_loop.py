"""The load loop that one writes in Python: a semaphore, one session, one task a request.

usage: aiohttp_loop.py URL REQUESTS CONCURRENCY BODY

Prints one JSON object: the requests that were answered in full, and the seconds that all of them took.
"""

import asyncio
import json
import sys
import time

import aiohttp


async def main(url, requests, concurrency, body):
    slots = asyncio.Semaphore(concurrency)
    # Without a limit of its own the connector would silently hold 100 connections.
    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def ask():
            async with slots:
                start = time.perf_counter()
                async with session.post(url, json=body) as response:
                    answer = await response.json()
                    took = time.perf_counter() - start
                return response.status == 200 and bool(answer["choices"]) and took > 0

        start = time.perf_counter()
        answered = await asyncio.gather(*(asyncio.create_task(ask()) for _ in range(requests)))
        took = time.perf_counter() - start
    print(json.dumps({"answered": sum(answered), "seconds": took}))


asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4])))
