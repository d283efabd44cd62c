// Subjects whose settings go together: they share a Baton (test/support/shared-stack.ts).
import './effects.js';
import './undo-after-cancel.js';
