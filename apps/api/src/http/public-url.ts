import { Environment } from '@baton/config';
import { Injectable } from '@nestjs/common';

/** The URL at which callers reach this server. Cards contain it. */
@Injectable()
export class PublicUrl {
  private url: string;

  constructor(environment: Environment) {
    this.url = environment.publicUrl;
  }

  /** Without a slash at the end. */
  get value(): string {
    return this.url;
  }

  /** With `PORT=0` the port is known only now; a URL that was configured stays as it is. */
  listening(port: number): void {
    const url = new URL(this.url);
    if (url.port !== '0') return;
    url.port = String(port);
    this.url = url.origin;
  }
}
