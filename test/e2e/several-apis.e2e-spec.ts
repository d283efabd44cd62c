// Subjects whose settings go together: they share a Baton (test/support/shared-stack.ts).
import './streams.js';
import './tenancy.js';
import './idempotency.js';
import './agents.js';
import './waits.js';
import './request-details.js';
import './runtimes.js';
