-- Whether queues have shares of their own: see anyWeight. Most stores have none.
CREATE INDEX queues_weighted ON queues (n) WHERE instr(settings, '"group":') + instr(settings, '"weight":') > 0;
