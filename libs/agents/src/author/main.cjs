// The compiled package. A main file outside of the package would not be found through a link.
module.exports = require('../../../../dist/libs/agents/src/author/index.js');
