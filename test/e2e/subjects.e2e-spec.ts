// Subjects whose settings go together: they share a Baton (test/support/shared-stack.ts).
import './agent-labels.js';
import './call-records.js';
import './llm.js';
import './owners.js';
import './reminders.js';
import './remote-a2a.js';
