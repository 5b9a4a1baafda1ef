// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What changes all the time: clocks, how busy a device is, its temperature and power. The operator
 * of the host decides which of it programs may know (--nvml), and the host may have no NVML: what
 * is not known is not supported.
 */
#include "qcu-library/nvml/api.h"
#include "qcu-library/nvml/state.h"

static unsigned int value_of(const struct qcu_sensors *now, enum qcu_sensor what)
{
	switch (what) {
#define X(name, greatest, whose) \
	case QCU_SENSOR_##name:  \
		return now->name;
		QCU_SENSORS(X)
#undef X
	case QCU_SENSOR_COUNT:
		break;
	}
	return 0;
}

static nv_return write_sensor(nv_device_t device, enum qcu_sensor what, unsigned int *to)
{
	nv_return err = qcul_nvml_check(device);
	struct qcu_sensors now;

	if (err)
		return err;
	if (!to)
		return NV_INVALID_ARGUMENT;
	err = qcul_nvml_sensors(device, &now);
	if (err)
		return err;
	if (!(now.known >> what & 1))
		return NV_NOT_SUPPORTED;
	*to = value_of(&now, what);
	return NV_SUCCESS;
}

/* QCU_SENSOR_COUNT: there is no such clock. */
static nv_return write_clock(nv_device_t device, nv_clock clock, const enum qcu_sensor *of,
			     unsigned int *mhz)
{
	nv_return err = qcul_nvml_check(device);

	if (err)
		return err;
	if (!mhz || clock > NV_CLOCK_VIDEO)
		return NV_INVALID_ARGUMENT;
	return of[clock] == QCU_SENSOR_COUNT ? NV_NOT_SUPPORTED
					     : write_sensor(device, of[clock], mhz);
}

nv_return nvmlDeviceGetClockInfo(nv_device_t device, nv_clock clock, unsigned int *mhz)
{
	static const enum qcu_sensor of[] = {QCU_SENSOR_clock_sm, QCU_SENSOR_clock_sm,
					     QCU_SENSOR_clock_memory, QCU_SENSOR_clock_video};

	return write_clock(device, clock, of, mhz);
}

nv_return nvmlDeviceGetApplicationsClock(nv_device_t device, nv_clock clock, unsigned int *mhz)
{
	static const enum qcu_sensor of[] = {QCU_SENSOR_app_sm, QCU_SENSOR_app_sm,
					     QCU_SENSOR_app_memory, QCU_SENSOR_COUNT};

	return write_clock(device, clock, of, mhz);
}

/* A guest cannot change them. */
nv_return nvmlDeviceGetDefaultApplicationsClock(nv_device_t device, nv_clock clock,
						unsigned int *mhz)
{
	return nvmlDeviceGetApplicationsClock(device, clock, mhz);
}

nv_return nvmlDeviceGetClock(nv_device_t device, nv_clock clock, nv_clock_id id, unsigned int *mhz)
{
	nv_return bad = qcul_nvml_check(device);

	if (bad)
		return bad;
	switch (id) {
	case NV_CLOCK_NOW:
		return nvmlDeviceGetClockInfo(device, clock, mhz);
	case NV_CLOCK_APP:
	case NV_CLOCK_APP_DEFAULT:
		return nvmlDeviceGetApplicationsClock(device, clock, mhz);
	case NV_CLOCK_BOOST_MAX:
		return nvmlDeviceGetMaxClockInfo(device, clock, mhz);
	}
	return NV_INVALID_ARGUMENT;
}

nv_return nvmlDeviceGetUtilizationRates(nv_device_t device, nv_rates *rates)
{
	nv_return err = qcul_nvml_check(device);
	nv_rates now;

	if (err)
		return err;
	if (!rates)
		return NV_INVALID_ARGUMENT;
	err = write_sensor(device, QCU_SENSOR_busy, &now.gpu);
	if (!err)
		err = write_sensor(device, QCU_SENSOR_busy_memory, &now.memory);
	if (!err)
		*rates = now;
	return err;
}

nv_return nvmlDeviceGetTemperature(nv_device_t device, nv_sensor sensor, unsigned int *celsius)
{
	nv_return err = qcul_nvml_check(device);

	if (!err && sensor != NV_SENSOR_GPU)
		err = NV_INVALID_ARGUMENT;
	return err ? err : write_sensor(device, QCU_SENSOR_celsius, celsius);
}

nv_return nvmlDeviceGetTemperatureV(nv_device_t device, nv_temperature *to)
{
	nv_return err = qcul_nvml_check(device);
	unsigned int celsius;

	if (err)
		return err;
	if (!to)
		return NV_INVALID_ARGUMENT;
	if (to->version != NV_VERSION(nv_temperature, 1))
		return NV_ARGUMENT_VERSION_MISMATCH;
	err = nvmlDeviceGetTemperature(device, to->sensor, &celsius);
	if (!err)
		to->celsius = (int)celsius;
	return err;
}

nv_return nvmlDeviceGetPowerUsage(nv_device_t device, unsigned int *milliwatts)
{
	return write_sensor(device, QCU_SENSOR_milliwatts, milliwatts);
}

nv_return nvmlDeviceGetEnforcedPowerLimit(nv_device_t device, unsigned int *milliwatts)
{
	return write_sensor(device, QCU_SENSOR_power_limit, milliwatts);
}

nv_return nvmlDeviceGetPowerManagementLimit(nv_device_t device, unsigned int *milliwatts)
{
	return write_sensor(device, QCU_SENSOR_power_limit, milliwatts);
}
