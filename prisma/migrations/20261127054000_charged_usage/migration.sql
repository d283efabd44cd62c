-- What tasks cost besides calls of models, in millionths of the currency: the price of their agent, and what the agent has reported so far. It is
-- in the hours of usage. NULL: nothing. Processes of the last release leave them out.
ALTER TABLE "tasks" ADD COLUMN "price_micros" BIGINT, ADD COLUMN "reported_micros" BIGINT;
ALTER TABLE "usage_hours" ADD COLUMN "agent_micros" BIGINT NOT NULL DEFAULT 0;
