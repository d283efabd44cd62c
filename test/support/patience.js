// Tests wait for what happens, however slow the machine.
jest.setTimeout(60_000);
