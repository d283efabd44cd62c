import getPort, { portNumbers } from 'get-port';

/**
 * Below the ports that Linux gives out (ip_local_port_range), and below those of `LocalRun`; above 10080, which `fetch` takes for a
 * port of another protocol.
 */
const [FIRST, LAST] = [10_081, 19_000];
const CHOICE = 900;

/**
 * A free port that a test binds later, or again after a restart. It is not one that the system gives out: another process could get it
 * meanwhile. The choice is random, because other test files choose one at the same time.
 */
export function freePort(host = '127.0.0.1'): Promise<number> {
  const first = FIRST + Math.floor(Math.random() * (LAST - FIRST));
  return getPort({ host, port: portNumbers(first, first + CHOICE) });
}
