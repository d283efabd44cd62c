import type { Task } from '@a2a-js/sdk';
import { InMemoryTaskStore, ServerCallContext, type TaskStore } from '@a2a-js/sdk/server';

/** What a remote agent keeps on its disk: it outlives the server that writes it. */
export class Disk {
  readonly tasks = new Map<string, Task>();
}

/** The task store of one server. After `unplug` nothing it still does reaches the disk, as if it had been killed. */
export class SurvivingTasks implements TaskStore {
  private plugged = true;
  private readonly lister = new InMemoryTaskStore();

  constructor(private readonly disk: Disk) {}

  unplug(): void {
    this.plugged = false;
  }

  save(task: Task): Promise<void> {
    if (this.plugged) this.disk.tasks.set(task.id, structuredClone(task));
    return Promise.resolve();
  }

  load(taskId: string): Promise<Task | undefined> {
    return Promise.resolve(structuredClone(this.disk.tasks.get(taskId)));
  }

  async list(...[params, context]: Parameters<TaskStore['list']>) {
    for (const task of this.disk.tasks.values()) await this.lister.save(task, new ServerCallContext());
    return this.lister.list(params, context);
  }
}
