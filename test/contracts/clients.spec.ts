// Contracts whose settings go together: they share a Baton (test/support/shared-stack.ts).
import './arbiter.js';
import './capsule.js';
import './cross-profile.js';
import './langsmith.js';
import './orloj.js';
import './society.js';
