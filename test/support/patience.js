// Tests with real processes and servers wait for what happens, however slow the machine; Jest's 5 s is for units.
jest.setTimeout(60_000);
