"""Measures the SDK's overhead over its HTTP library, httpx2.

Calls the SDK's method `status`, and sends the same request with httpx2 alone. The calls alternate:
50 with httpx2, then 50 with the SDK, and so on. Prints as JSON how many milliseconds httpx2 and the
SDK took in total. The argument N means N calls with httpx2 and N calls with the SDK. Needs the
environment variables SERVICE_BASE_URL, SERVICE_API_KEY and JOB_ID.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from time import perf_counter

import httpx2

from forge import AsyncForge, Forge

TURN = 50
URL, KEY, JOB_ID = (os.environ[name] for name in ("SERVICE_BASE_URL", "SERVICE_API_KEY", "JOB_ID"))
HEADERS = {"X-Service-Api-Key": KEY}
PATH = f"/api/jobs/{JOB_ID}"


def blocking(calls: int) -> dict[str, float]:
    bare_s = sdk_s = 0.0
    with Forge(KEY, URL) as forge, httpx2.Client(base_url=URL, headers=HEADERS) as client:
        forge.status(JOB_ID)
        client.get(PATH)
        for _ in range(0, calls, TURN):
            began = perf_counter()
            for _ in range(TURN):
                assert client.get(PATH).json()["job_id"] == JOB_ID
            between = perf_counter()
            for _ in range(TURN):
                assert forge.status(JOB_ID).job_id == JOB_ID
            bare_s += between - began
            sdk_s += perf_counter() - between
    return {"bare_ms": bare_s * 1000, "sdk_ms": sdk_s * 1000}


async def awaiting(calls: int) -> dict[str, float]:
    bare_s = sdk_s = 0.0
    async with (
        AsyncForge(KEY, URL) as forge,
        httpx2.AsyncClient(base_url=URL, headers=HEADERS) as client,
    ):
        await forge.status(JOB_ID)
        await client.get(PATH)
        for _ in range(0, calls, TURN):
            began = perf_counter()
            for _ in range(TURN):
                assert (await client.get(PATH)).json()["job_id"] == JOB_ID
            between = perf_counter()
            for _ in range(TURN):
                assert (await forge.status(JOB_ID)).job_id == JOB_ID
            bare_s += between - began
            sdk_s += perf_counter() - between
    return {"bare_ms": bare_s * 1000, "sdk_ms": sdk_s * 1000}


count = int(sys.argv[1])
print(json.dumps({"blocking": blocking(count), "awaiting": asyncio.run(awaiting(count))}))
