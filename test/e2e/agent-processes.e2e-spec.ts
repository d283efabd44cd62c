// Subjects whose settings go together: they share a Baton (test/support/shared-stack.ts).
import './models-in-code.js';
import './function-tools.js';
import './dead-letters.js';
import './hostile-executors.js';
// The last one: it leaves no worker.
import './executors.js';
