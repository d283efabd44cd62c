-- Workers of earlier releases reserve no slots.
ALTER TABLE "workers" ADD COLUMN "reserved_slots" INTEGER;
