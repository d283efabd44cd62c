// Subjects whose settings go together: they share a Baton (test/support/shared-stack.ts), over Redis where there is one.
import './clients.js';
import './catalog.js';
import './schedules.js';
import './delegation.js';
// The last one: its tasks run for minutes.
import './limits.js';
