// Subjects whose settings go together: they share a Baton and a browser (test/support/shared-stack.ts).
import './agents.js';
import './both-versions.js';
import './trace.js';
