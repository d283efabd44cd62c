/** Collects the conditions of a query and the values they name. */
export class Conditions {
  readonly values: unknown[] = [];
  private readonly terms: string[] = [];

  /** @returns the placeholder of the value */
  value(value: unknown): string {
    return `$${this.values.push(value).toString()}`;
  }

  add(term: string): void {
    this.terms.push(term);
  }

  toString(): string {
    return this.terms.join(' AND ');
  }
}
