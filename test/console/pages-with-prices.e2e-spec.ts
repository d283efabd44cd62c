// Subjects whose settings go together: they share a Baton and a browser (test/support/shared-stack.ts).
import './inbox.js';
import './operators.js';
import './playground.js';
import './tasks.js';
import './tenant-pages.js';
