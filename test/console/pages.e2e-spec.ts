// Subjects whose settings go together: they share a Baton and a browser (test/support/shared-stack.ts).
import './bulk.js';
import './connection.js';
import './home.js';
import './lists.js';
import './palette.js';
import './task-page.js';
import './tenant-pages.js';
import './webhooks.js';
