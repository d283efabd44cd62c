"""Calls agents with a framework. Prints a line for each check, as TAP does. Run it with `./run`.

usage: BATON_URL=http://localhost:8080/agents/interop/ BATON_TOKEN=… main.py strands|adk [VERSION OF THE SDK]
"""

import asyncio
import importlib
import logging
import os
import sys
import traceback
import warnings

# Both say much that is no fault.
logging.disable(logging.CRITICAL)
warnings.simplefilter('ignore')


async def check(name, run):
    try:
        await run()
    except Exception:
        print(f'not ok - {name}')
        print('\n'.join(f'# {line}' for line in traceback.format_exc().splitlines()), flush=True)
        return False
    print(f'ok - {name}', flush=True)
    return True


async def main(framework, *version):
    module = importlib.import_module(f'{framework}_checks')
    results = [
        await check(f'{" ".join([module.NAME, *version])}{mode}: {name}', run)
        for mode, checks in module.checks(os.environ['BATON_URL'], os.environ['BATON_TOKEN']).items()
        for name, run in checks.items()
    ]
    return 0 if all(results) else 1


sys.exit(asyncio.run(main(*sys.argv[1:])))
