// Tests wait for what happens, however slow the machine. This bound ends only a test or a hook that hangs, so no
// test has one of its own. It is longer than what helpers wait for a process (baton-process.ts), which then tell
// what the process has logged.
jest.setTimeout(15 * 60_000);
