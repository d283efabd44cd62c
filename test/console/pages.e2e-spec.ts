// Subjects whose settings go together: they share a Baton and a browser (test/support/shared-stack.ts).
import './agents.js';
import './both-versions.js';
import './bulk.js';
import './connection.js';
import './home.js';
import './lists.js';
import './palette.js';
import './task-page.js';
import './trace.js';
import './webhooks.js';
