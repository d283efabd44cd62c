-- A secret lists the destinations that may receive it. NULL: an earlier release stored it, and it may go anywhere until
-- somebody sets its origins.

ALTER TABLE "secrets" ADD COLUMN "origins" JSON;
