"""Calls the agent with a2a-sdk, over each binding. Prints a line for each check, as TAP does. Run it with `./run`.

usage: BATON_URL=http://localhost:8080/agents/echo/ BATON_TOKEN=… main.py 1.0|0.3
"""

import asyncio
import importlib
import os
import sys
import traceback

import httpx
from checks import CHECKS


async def check(name, run, sdk, binding):
    headers = {'Authorization': f'Bearer {os.environ["BATON_TOKEN"]}'}
    try:
        # The default, 5 s, is short for a blocking send.
        async with httpx.AsyncClient(headers=headers, timeout=60) as http:
            await run(await sdk.Client.connect(binding, os.environ['BATON_URL'], http))
    except Exception:
        print(f'not ok - {name}')
        print('\n'.join(f'# {line}' for line in traceback.format_exc().splitlines()), flush=True)
        return False
    print(f'ok - {name}', flush=True)
    return True


async def main(version):
    sdk = importlib.import_module(f'sdk_{version.replace(".", "_")}')
    passed = [
        await check(f'{version} {binding}: {name}', run, sdk, binding)
        for binding in sdk.BINDINGS
        for name, run in CHECKS.items()
        if name not in sdk.WITHOUT
    ]
    return 0 if all(passed) else 1


sys.exit(asyncio.run(main(sys.argv[1])))
