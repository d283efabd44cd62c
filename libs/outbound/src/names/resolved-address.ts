/** An address of a host. */
export interface ResolvedAddress {
  address: string;
  family: number;
}
