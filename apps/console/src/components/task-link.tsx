import { Anchor } from '@mantine/core';
import { Link } from '@tanstack/react-router';

/** Leads to the page of a task. @param children what it shows; unset = the id */
export const TaskLink = ({ id, children = id }: { id: string; children?: React.ReactNode }) => (
  <Anchor component={Link} to={`/tasks/${id}`} size="sm" underline="always">
    {children}
  </Anchor>
);
