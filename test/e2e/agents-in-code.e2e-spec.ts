// Subjects whose settings go together: they share a Baton (test/support/shared-stack.ts). Its worker has one slot.
import './steps.js';
import './changed-code.js';
import './continue.js';
import './tools.js';
import './remote-calls.js';
import './spending-caps.js';
import './pinned.js';
