import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

/** A process as it was when we saw it: its id alone may belong to somebody else by now. */
interface ProcessRecord {
  pid: number;
  /** When the process started, in the system's own words. */
  started: string;
}

/** When the process with this id started, or undefined if there is none. */
function startOf(pid: number): string | undefined {
  try {
    if (process.platform === 'linux') {
      // Field 22 of the line; the name in field 2 may hold spaces and ends with the last parenthesis.
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
      return fields[0] === 'Z' ? undefined : fields[19];
    }
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim() || undefined;
  } catch {
    return undefined;
  }
}

/** Notes in `file` that the process `pid` is ours. */
export function recordProcess(file: string, pid: number): void {
  const record: ProcessRecord = { pid, started: startOf(pid) ?? '' };
  writeFileSync(file, JSON.stringify(record), { mode: 0o600 });
}

/** The id of the process noted in `file`, if that very process is still alive. */
export function recordedProcess(file: string): number | undefined {
  try {
    const record = JSON.parse(readFileSync(file, 'utf8')) as ProcessRecord;
    return startOf(record.pid) === record.started ? record.pid : undefined;
  } catch {
    return undefined;
  }
}
