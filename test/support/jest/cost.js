const { appendFileSync, readFileSync } = require('node:fs');
const { relative } = require('node:path');

const TICKS_PER_SECOND = 100;

/** CPU seconds of this process and of its children that have ended: see proc_pid_stat(5). Linux only. */
function cpuSeconds() {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [user, system, childrenUser, childrenSystem] = fields.slice(11, 15).map(Number);
  return {
    own: (user + system) / TICKS_PER_SECOND,
    children: (childrenUser + childrenSystem) / TICKS_PER_SECOND,
  };
}

/**
 * What a file of tests costs: TEST_COST names a file that gets a line for each. The seconds of its worker come first, then
 * those of the processes it has started. What the shared Postgres and Redis do for it is in neither.
 */
class Cost {
  constructor(testPath) {
    this.testPath = testPath;
    if (process.env.TEST_COST) this.start = cpuSeconds();
  }

  end() {
    if (!this.start) return;
    const now = cpuSeconds();
    const own = now.own - this.start.own;
    const children = now.children - this.start.children;
    const columns = [own + children, own, children].map((seconds) => seconds.toFixed(1));
    appendFileSync(
      process.env.TEST_COST,
      `${[...columns, relative(process.cwd(), this.testPath)].join('\t')}\n`,
    );
  }
}

module.exports = { Cost };
