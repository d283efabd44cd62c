import { Anchor } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { ShortId } from './short-id';

/** Leads to the page of a task. @param children what it shows; unset = the end of the id */
export const TaskLink = ({
  id,
  children = <ShortId id={id} />,
}: {
  id: string;
  children?: React.ReactNode;
}) => (
  <Anchor component={Link} to={`/tasks/${id}`} size="sm" underline="always">
    {children}
  </Anchor>
);
