// The systems outside of Baton of `npm run chaos`, in a process of their own: see outside-servers.ts.
require('../support/load-typescript.js');
const { serveOutside } = require('./outside-servers.ts');

process.on('disconnect', () => process.exit());
void serveOutside().then((address) => process.send(address));
