// Rows of bench/neighbours.mjs without an attack: programs that are no part of Baton take the CPU. So they show what an attack costs
// that only takes CPU of a machine that Baton shares with it.
import { spawn } from 'node:child_process';

const burner = () => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' });

/** Programs that compute until the end. */
const busy = (count) => ({
  act: async (a) => {
    if (a.turn++ > 0) return a.rest();
    const programs = Array.from({ length: count }, burner);
    await a.rest();
    for (const program of programs) program.kill('SIGKILL');
  },
  prepare: (a) => (a.turn = 0),
});

export const MACHINE_LOADS = {
  'machine: one busy program': busy(1),
  'machine: two busy programs': busy(2),
};
