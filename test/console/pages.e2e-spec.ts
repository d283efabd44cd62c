import { stopSharedConsole } from '../support/console.js';
import './bulk.js';
import './connection.js';
import './home.js';
import './lists.js';
import './palette.js';
import './task-page.js';
import './webhooks.js';

// Pages that need no settings of their own: their Baton and its browser cost more than most of them.
afterAll(stopSharedConsole);
