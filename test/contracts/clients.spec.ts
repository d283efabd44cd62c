import { stopSharedStack } from '../support/contract.js';
import './arbiter.js';
import './capsule.js';
import './cross-profile.js';
import './langsmith.js';
import './orloj.js';

// Contracts that need no settings of their own: their stack costs more than their calls.
afterAll(stopSharedStack);
